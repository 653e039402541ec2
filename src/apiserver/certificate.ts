// Loads the certificate of `platform serve`, from files or from its own CA, and the CA that clients trust.

import type { X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { fileProblem } from '../host/fs-errors.ts'
import { authorityIn } from '../serving/authority.ts'
import { fingerprint, type Pair } from '../serving/certificate.ts'
import { certificatesIn, pemOf, rootOf } from '../serving/certificate-chain.ts'
import { type CertificateSource, fileCertificate, ownCertificate, pairProblems } from '../serving/tls.ts'
import { type Settings, SettingsError } from './settings.ts'

type CertificateFiles = Pick<Settings, 'tlsCert' | 'tlsKey' | 'tlsCa'>

export type CertificateOptions = {
  readonly settings: CertificateFiles & Pick<Settings, 'tlsSan' | 'https' | 'replica.url'>
  /** The data directory. */
  readonly directory: string
  readonly now: () => number
  readonly failed: (what: string, error: unknown) => void
}

export type ServerCertificate = CertificateSource & {
  /** For clients. undefined: neither the chain nor tlsCa contains it, so clients use the CAs of their machine. */
  readonly ca: string | undefined
}

/** Throws SettingsError if the files are invalid. */
export function openCertificate(options: CertificateOptions): ServerCertificate {
  return options.settings.tlsCert ? fromFiles(options) : ofOwnCa(options)
}

function fromFiles({ settings, failed }: CertificateOptions): ServerCertificate {
  const { ca } = readCertificate(settings)
  const reloadFailed = (error: unknown) => failed('reloading the certificate', error)
  const source = fileCertificate({ certificate: settings.tlsCert, key: settings.tlsKey, failed: reloadFailed })
  const trusted = ca === undefined ? [] : certificatesIn(ca)
  /** Clients that know only the fingerprint of the CA need it in the chain. */
  const withAuthority = ({ certificate, key }: Pair): Pair => {
    const chain = certificatesIn(certificate)
    const isComplete = ca === undefined || chain.some(one => pemOf(one) === ca)
    return { certificate: isComplete ? certificate : `${certificate.trimEnd()}\n${ca}`, key }
  }
  return {
    get current() {
      return withAuthority(source.current)
    },
    follow: changed =>
      source.follow(pair => {
        if (ca !== undefined && !trusted.includes(rootOf(certificatesIn(pair.certificate), trusted) as X509Certificate))
          reloadFailed(
            new Error(`another CA signed the new ${settings.tlsCert}: clients that trust the previous one reject it`),
          )
        changed(withAuthority(pair))
      }),
    stop: source.stop,
    ca,
  }
}

/** Reads the files of tlsCert, tlsKey and tlsCa. Throws SettingsError with all problems. */
export function readCertificate({ tlsCert, tlsKey, tlsCa }: CertificateFiles): {
  readonly leaf: X509Certificate
  readonly ca: string | undefined
} {
  const unreadable: string[] = []
  const read = (setting: string, file: string) => {
    try {
      return readFileSync(file, 'utf8')
    } catch (error) {
      unreadable.push(`${setting}: ${fileProblem(file, error)}`)
      return ''
    }
  }
  const both = 'tlsCert and tlsKey'
  const pair = { certificate: read(both, tlsCert), key: read(both, tlsKey) }
  const trusted = tlsCa ? parseCertificates(read('tlsCa', tlsCa)) : []
  if (unreadable.length) throw new SettingsError(unreadable)
  const problems = pairProblems(pair, { certificate: tlsCert, key: tlsKey })
  if (problems.length) throw new SettingsError([`${both}: ${problems.join('; ')}`])
  if (tlsCa && !trusted.length) throw new SettingsError([`tlsCa: ${tlsCa} does not contain a PEM certificate`])
  const chain = parseCertificates(pair.certificate)
  const root = rootOf(chain, trusted)
  if (tlsCa && !(root && trusted.includes(root)))
    throw new SettingsError([`tlsCa: no certificate of ${tlsCa} signed ${tlsCert}`])
  return { leaf: chain[0] as X509Certificate, ca: root && pemOf(root) }
}

/** Empty if the text has no certificate or an invalid one. */
export function parseCertificates(text: string): readonly X509Certificate[] {
  try {
    return certificatesIn(text)
  } catch {
    return []
  }
}

/** The other replicas connect to these. */
function hostsOf(settings: CertificateOptions['settings']): readonly string[] {
  const urls = [`https://${settings.https}`, settings['replica.url']].filter(url => URL.canParse(url))
  const hosts = urls.map(url => new URL(url).hostname.replace(/^\[|\]$/g, ''))
  return hosts.filter(host => host !== '0.0.0.0' && host !== '::')
}

function ofOwnCa({ settings, directory, now }: CertificateOptions): ServerCertificate {
  const authority = authorityIn(directory, now())
  const kubeconfig = join(directory, 'admin.kubeconfig')
  if (authority.isNew && existsSync(kubeconfig))
    console.log(
      `Created a new CA, ${fingerprint(authority.certificate)}. Clients still trust the previous one, and so does ${kubeconfig}: delete that file, and the next start writes it again.`,
    )
  const names = new Set(['localhost', '127.0.0.1', '::1', hostname(), ...hostsOf(settings), ...settings.tlsSan])
  const source = ownCertificate(authority, [...names], now)
  return {
    get current() {
      return source.current
    },
    follow: source.follow,
    stop: source.stop,
    ca: authority.certificate,
  }
}
