// The files of a gateway itself: its certificate and its audit log. gateway.ts opens them, gateway-check.ts looks at them.

import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { dirname, resolve } from 'node:path'
import { UsageError } from '../cli/command.ts'
import type { GatewayConfig } from '../gateway/config-schema.ts'
import { saltIn } from '../serving/audit-redact.ts'
import { type CertificateSource, fileCertificate, ownCertificate } from '../serving/tls.ts'
import { authorityIn, openDirectory } from './data-directory.ts'

type Tls = { readonly now: () => number; readonly failed: (error: unknown) => void }

/** Throws UsageError. A CA of its own is made where it is missing. */
export function certificatesOf({ tls = {} }: GatewayConfig, file: string, { now, failed }: Tls): CertificateSource {
  const at = (path = '') => resolve(dirname(file), path)
  try {
    if (!tls.directory) return fileCertificate({ certificate: at(tls.certificate), key: at(tls.key), failed })
    openDirectory(at(tls.directory))
    const names = new Set(['localhost', '127.0.0.1', '::1', hostname(), ...(tls.names ?? [])])
    return ownCertificate(authorityIn(at(tls.directory), now()), [...names], now)
  } catch (error) {
    throw new UsageError([`${file}: tls: ${(error as Error).message}`])
  }
}

export function auditOf({ audit = {} }: GatewayConfig, file: string) {
  const at = (path: string) => resolve(dirname(file), path)
  const log = audit.log ?? '-'
  return {
    settings: {
      'audit.log': log === '-' || log === 'off' ? log : at(log),
      'audit.policy': audit.policy ? at(audit.policy) : '',
      'audit.maxSize': 100,
      'audit.maxFiles': 10,
      'audit.maxAge': 0,
      'audit.refuseWrites': false,
    },
    directory: dirname(file),
    salt: () => (audit.salt ? saltIn(at(audit.salt), true) : randomBytes(32)),
  }
}
