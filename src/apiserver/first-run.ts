// Prints the location of the keys when a server starts for the first time.

import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Authenticate } from '../auth/authn/authenticate.ts'
import { writeSecret } from '../host/secret-file.ts'
import { fingerprint } from '../serving/certificate.ts'
import type { Listener } from '../serving/listener.ts'
import { isAdminKeyUnread, keptKey, markAdminKeyRead } from './bootstrap-admin.ts'
import { followAddress, kubeconfig, reachable } from './data-directory.ts'

export type FirstRunOptions = {
  readonly directory: string
  readonly listeners: readonly Listener[]
  readonly certificates: { readonly ca: string | undefined } | undefined
  /** The setting: the certificate file of the operator. */
  readonly tlsCert: string
  /** The file or variable of the key ring. */
  readonly ring: { readonly from: string }
  readonly authenticate: Authenticate
  readonly print: (text: string) => void
}

/**
 * Prints on the first successful start. Later starts print only if admin.kubeconfig is missing, for example after a
 * restore.
 */
export function printFirstRun(options: FirstRunOptions): void {
  const { directory, listeners, certificates, tlsCert, ring, authenticate, print } = options
  const secure = listeners.find(listener => listener.url.startsWith('https:'))
  const file = join(directory, 'admin.kubeconfig')
  const isFirst = isAdminKeyUnread(directory)
  const isMissing = secure !== undefined && !existsSync(file)
  const key = isFirst || isMissing ? keptKey(directory, authenticate) : undefined
  if (key === undefined) followAddress(directory, listeners)
  else {
    if (secure && certificates)
      writeSecret(file, kubeconfig({ server: reachable(secure.url), ca: certificates.ca, key }))
    const isInside = !ring.from.startsWith('env:') && dirname(resolve(ring.from)) === directory
    const copied = isInside ? '; a copy of this directory is enough to decrypt the secrets' : ''
    const lines = [
      isFirst ? 'First start: created the administrator account.' : 'Wrote admin.kubeconfig again.',
      ...(secure && certificates
        ? [
            `  CA fingerprint   ${certificates.ca === undefined ? missingCa(tlsCert) : fingerprint(certificates.ca)}`,
            `  kubectl          kubectl --kubeconfig ${file} get teams`,
          ]
        : []),
      `  access key       ${join(directory, 'admin.key')}`,
      `  console          ${consoleUrl(listeners)}`,
      `  encryption key   ${ring.from}${copied}`,
    ]
    print(lines.join('\n'))
  }
  markAdminKeyRead(directory)
}

/** Over plain HTTP if it is served, because browsers do not know the CA of the server. */
const consoleUrl = (listeners: readonly Listener[]) => {
  const plain = listeners.find(({ url }) => url.startsWith('http:')) ?? listeners[0]
  return `${reachable(plain?.url ?? '')}/console/`
}

const missingCa = (file: string) =>
  `unknown: ${file} does not contain the CA; if clients do not trust it already, append it or set --tls-ca`
