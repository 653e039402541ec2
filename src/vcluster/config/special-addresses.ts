// Addresses that endpoints may not have, with their sources. Operators change the list with deniedCIDRs and allowedCIDRs.

export type SpecialAddress = {
  readonly network: string
  /** Used in the condition: "… is a loopback address". */
  readonly what: string
  /** The standard or cloud that defines the address. */
  readonly source: string
}

const metadata = 'a cloud metadata address'

/** The first entry that matches names the address. */
export const specialAddresses: readonly SpecialAddress[] = [
  {
    network: '169.254.169.254/32',
    what: metadata,
    source: 'AWS, Google Cloud, Azure, Oracle Cloud, OpenStack and others',
  },
  { network: '169.254.170.2/32', what: metadata, source: 'AWS: credentials of ECS tasks' },
  { network: '169.254.170.23/32', what: metadata, source: 'AWS: EKS Pod Identity agent' },
  { network: '169.254.42.42/32', what: metadata, source: 'Scaleway' },
  { network: '169.254.0.23/32', what: metadata, source: 'Tencent Cloud' },
  { network: '100.100.100.200/32', what: metadata, source: 'Alibaba Cloud' },
  { network: '168.63.129.16/32', what: metadata, source: 'Azure: WireServer' },
  { network: '192.0.0.192/32', what: metadata, source: 'Oracle Cloud Classic' },
  { network: 'fd00:ec2::/32', what: metadata, source: 'AWS: metadata, Pod Identity, DNS and time over IPv6' },
  { network: 'fd20:ce::254/128', what: metadata, source: 'Google Cloud over IPv6' },
  { network: 'fd00:c1::a9fe:a9fe/128', what: metadata, source: 'Oracle Cloud over IPv6' },
  { network: 'fd00:42::42/128', what: metadata, source: 'Scaleway over IPv6' },
  { network: 'fd00:a9fe:a9fe::1/128', what: metadata, source: 'Akamai (Linode) over IPv6' },
  { network: 'fd00:100::100:200/128', what: metadata, source: 'Alibaba Cloud over IPv6' },
  { network: '0.0.0.0/8', what: 'an unspecified address', source: 'RFC 1122, 3.2.1.3' },
  { network: '::/128', what: 'an unspecified address', source: 'RFC 4291, 2.5.2' },
  { network: '127.0.0.0/8', what: 'a loopback address', source: 'RFC 1122, 3.2.1.3' },
  { network: '::1/128', what: 'a loopback address', source: 'RFC 4291, 2.5.3' },
  { network: '169.254.0.0/16', what: 'a link-local address', source: 'RFC 3927' },
  { network: 'fe80::/10', what: 'a link-local address', source: 'RFC 4291, 2.5.6' },
  { network: '224.0.0.0/4', what: 'a multicast or broadcast address', source: 'RFC 5771' },
  { network: '255.255.255.255/32', what: 'a multicast or broadcast address', source: 'RFC 919' },
  { network: 'ff00::/8', what: 'a multicast or broadcast address', source: 'RFC 4291, 2.7' },
]
