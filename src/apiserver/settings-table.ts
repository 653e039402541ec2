// Lists the settings of the server: each has a flag, an environment variable and a key in the configuration file (D1).

import { isReservedName } from '../api/names.ts'
import { networkProblem } from '../serving/client-address.ts'
import { endpointProblem } from '../serving/tracing/settings.ts'
import { engineNames } from '../storage/index.ts'

export type Row = {
  readonly default: string | boolean | number | readonly string[]
  readonly what: string
  readonly check?: (value: never) => string | undefined
}

const address = (value: string) =>
  value === 'off' ||
  /^(\[[0-9a-fA-F:]+\]|[^:]+):(\d{1,4}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5])$/.test(value)
    ? undefined
    : 'HOST:PORT or off'
const positive = (value: number) => (value > 0 ? undefined : 'a whole number above 0')

/** The key is used in the file. The flag is --key with dashes, the variable PLATFORM_KEY with underscores. */
export const table = {
  https: { default: '127.0.0.1:8443', what: 'Address of the HTTPS listener: HOST:PORT or off.', check: address },
  http: { default: '127.0.0.1:8080', what: 'Address of the plain HTTP listener: HOST:PORT or off.', check: address },
  insecureHttp: { default: false, what: 'Allow plain HTTP on an address that is not loopback.' },
  data: { default: 'data', what: 'Directory for the store and the key files.' },
  storage: {
    default: 'sqlite',
    what: `Storage engine: ${engineNames.join(' or ')}.`,
    check: (value: string) => (engineNames.includes(value) ? undefined : engineNames.join(' or ')),
  },
  'etcd.endpoints': {
    default: [] as readonly string[],
    what: 'URLs of the etcd members, for storage etcd. May be repeated.',
    check: (value: readonly string[]) =>
      value.every(one => /^https?:\/\/(\[[0-9a-fA-F:]+\]|[^/:\s]+):\d+$/.test(one))
        ? undefined
        : 'URLs such as https://10.0.0.1:2379',
  },
  'etcd.ca': { default: '', what: 'File with the CA of the etcd members. Default: the CAs of this machine.' },
  'etcd.cert': { default: '', what: 'Client certificate file for etcd.' },
  'etcd.key': { default: '', what: 'Private key file for the client certificate.' },
  'etcd.prefix': {
    default: '/platform',
    what: 'Prefix of all keys in etcd. Each installation needs its own.',
    check: (value: string) =>
      /^(\/[A-Za-z0-9._-]+)+$/.test(value) ? undefined : 'a path such as /platform, without a trailing slash',
  },
  'etcd.allowUnsafeVersion': {
    default: false,
    what: 'Accept versions of etcd with known bugs that lose data or return stale reads. For tests.',
  },
  'replica.url': {
    default: '',
    what: 'URL of this replica for the other replicas. Default: the address of the HTTPS listener.',
    check: (value: string) =>
      value === '' || (/^https:\/\/[^/?#\s@]+$/.test(value) && URL.canParse(value))
        ? undefined
        : 'an https URL without a path, such as https://10.0.0.1:8443',
  },
  masterKey: {
    default: '',
    what: 'Key ring that encrypts secrets: a file or env:NAME. Default: master.key in the data directory.',
  },
  tlsCert: {
    default: '',
    what: 'Certificate file for HTTPS, reloaded when it changes. Default: issued by the built-in CA.',
  },
  tlsKey: { default: '', what: 'Private key file for the HTTPS certificate.' },
  tlsCa: {
    default: '',
    what: 'File with the CA that signed tlsCert, for clients. Default: the CA in the chain of tlsCert.',
  },
  tlsSan: {
    default: [] as readonly string[],
    what: 'Additional names and addresses for the certificate of the built-in CA.',
  },
  logLevel: {
    default: 'info',
    what: 'Log level: debug, info, warn or error.',
    check: (value: string) =>
      ['debug', 'info', 'warn', 'error'].includes(value) ? undefined : 'debug, info, warn or error',
  },
  'otlp.endpoint': {
    default: '',
    what: 'URL of an OpenTelemetry collector that receives traces over OTLP/HTTP. Default: OTEL_EXPORTER_OTLP_ENDPOINT, else no traces.',
    check: (value: string) => endpointProblem(value),
  },
  shutdownDelay: { default: 1, what: 'Seconds between failing /readyz and closing, for load balancers to notice.' },
  'auth.maxKeyTTL': {
    default: 0,
    what: 'Maximum lifetime of an access key in seconds; 0: unlimited. Also applies to existing keys.',
  },
  'auth.config': {
    default: '',
    what: 'AuthConfig file with the issuers whose tokens machines sign in with. Default: access keys only.',
  },
  'auth.requireUsers': {
    default: false,
    what: 'Accept only keys of users that have an enabled User object. The user admin needs none until one exists.',
  },
  'auth.adminGroups': {
    default: [] as readonly string[],
    what: 'Groups whose members are administrators, with the prefix of their provider.',
    check: (value: readonly string[]) =>
      value.some(group => isReservedName(group) || group.includes(','))
        ? 'groups without commas and without the prefixes system: and platform:'
        : undefined,
  },
  'auth.pastedKeys': {
    default: true,
    what: 'Allow people to sign in to the web pages with an access key.',
  },
  baseUrl: {
    default: '',
    what: 'Public URL of this server, which is the issuer of tokens. Default: the address of the HTTPS listener.',
    check: (value: string) =>
      value === '' || /^https:\/\/[^/?#\s]+(\/[^?#\s]*[^/?#\s])?$/.test(value)
        ? undefined
        : 'an https URL without a trailing slash',
  },
  'token.maxTTL': {
    default: 86400,
    what: 'Maximum lifetime of a direct-cluster token in seconds.',
    check: (value: number) => (value >= 60 && value <= 86400 ? undefined : 'a number of seconds from 60 to 86400'),
  },
  'gateway.config': {
    default: '',
    what: 'GatewayConfig file with clusters of the embedded gateway, in addition to Cluster objects.',
  },
  'secrets.removeStale': {
    default: false,
    what: 'Remove the data of a project secret if its source was deleted, or if its owner may no longer read the source.',
  },
  'secrets.versions': { default: 20, what: 'Number of earlier versions of a secret to keep.' },
  'secrets.versionDays': {
    default: 90,
    what: 'Days to keep an earlier version of a secret.',
    check: positive,
  },
  'limits.reads': { default: 400, what: 'Maximum number of concurrent reads; more get a 429.', check: positive },
  'limits.writes': { default: 400, what: 'Maximum number of concurrent writes.', check: positive },
  'limits.watches': { default: 10000, what: 'Maximum number of open watches.', check: positive },
  'limits.share': {
    default: 80,
    what: 'Percentage of these limits that one identity may use.',
    check: (value: number) => (value > 0 && value <= 100 ? undefined : 'a percentage from 1 to 100'),
  },
  'limits.rate': { default: 0, what: 'Maximum requests per second from one identity; 0: unlimited.' },
  'limits.burst': {
    default: 1000,
    what: 'Maximum burst of requests from one identity. Applies only if limits.rate is set.',
    check: positive,
  },
  'limits.previews': { default: 60, what: 'Maximum previews of patches by one identity in a minute; 0: no previews.' },
  'limits.unknownKeys': {
    default: 20,
    what: 'Unknown keys from one address in five minutes before it gets a 429; 0: unlimited.',
  },
  'limits.auth': {
    default: 60,
    what: 'Maximum sign-in requests from one address in a minute; more get a 429.',
    check: positive,
  },
  'limits.authTotal': {
    default: 1200,
    what: 'Maximum sign-in requests from all addresses in a minute.',
    check: positive,
  },
  trustedProxy: {
    default: [] as readonly string[],
    what: 'Addresses or networks of trusted proxies, whose X-Forwarded-For header is used.',
    check: (value: readonly string[]) =>
      value.some(networkProblem) ? 'addresses or networks such as 10.0.0.0/8' : undefined,
  },
  'audit.log': {
    default: 'audit.log',
    what: 'Target of audit events: a file (relative to the data directory), - for stdout, or off.',
  },
  'audit.policy': { default: '', what: 'File with an audit.k8s.io/v1 Policy. Default: writes, and reads of secrets.' },
  'audit.maxSize': {
    default: 100,
    what: 'Maximum size of the audit log in MiB before it is rotated.',
    check: positive,
  },
  'audit.maxFiles': { default: 10, what: 'Number of rotated audit logs to keep; 0: all.' },
  'audit.maxAge': { default: 0, what: 'Days to keep rotated audit logs; 0: forever.' },
  'audit.refuseWrites': { default: false, what: 'Reject writes while the audit log is not writable.' },
} as const satisfies { readonly [key: string]: Row }
