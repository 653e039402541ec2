// Loads the certificate of `platform serve`, from files or from its own CA, and the CA that clients trust.

import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { fileProblem } from '../host/fs-errors.ts'
import { authorityIn } from '../serving/authority.ts'
import { fingerprint } from '../serving/certificate.ts'
import { type CertificateSource, fileCertificate, ownCertificate } from '../serving/tls.ts'
import { type Settings, SettingsError } from './settings.ts'

export type CertificateOptions = {
  readonly settings: Pick<Settings, 'tlsCert' | 'tlsKey' | 'tlsSan'>
  /** The data directory. */
  readonly directory: string
  readonly now: () => number
  readonly failed: (what: string, error: unknown) => void
}

type WithCa = CertificateSource & { readonly ca: string }

/** Throws SettingsError if the files are invalid. */
export function openCertificate(options: CertificateOptions): WithCa {
  return options.settings.tlsCert ? fromFiles(options) : ofOwnCa(options)
}

function fromFiles({ settings, failed }: CertificateOptions): WithCa {
  const { tlsCert: certificate, tlsKey: key } = settings
  try {
    const source = fileCertificate({
      certificate,
      key,
      failed: error => failed('reloading the certificate', error),
    })
    return withCa(source, source.current.certificate)
  } catch (error) {
    const { path, message } = error as NodeJS.ErrnoException
    throw new SettingsError([`tlsCert and tlsKey: ${path === undefined ? message : fileProblem(path, error)}`])
  }
}

function ofOwnCa({ settings, directory, now }: CertificateOptions): WithCa {
  const authority = authorityIn(directory, now())
  const kubeconfig = join(directory, 'admin.kubeconfig')
  if (authority.isNew && existsSync(kubeconfig))
    console.log(
      `Created a new CA, ${fingerprint(authority.certificate)}. Clients still trust the previous one, and so does ${kubeconfig}: delete that file, and the next start writes it again.`,
    )
  const names = new Set(['localhost', '127.0.0.1', '::1', hostname(), ...settings.tlsSan])
  return withCa(ownCertificate(authority, [...names], now), authority.certificate)
}

const withCa = (source: CertificateSource, ca: string) => ({
  get current() {
    return source.current
  },
  follow: source.follow,
  stop: source.stop,
  ca,
})
