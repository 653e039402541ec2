// `platform admin reset`: creates a new administrator key; the server must be stopped (D1).

import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { makeAdminKey } from '../apiserver/bootstrap-admin.ts'
import { buildApiServer } from '../apiserver/build.ts'
import { readCertificate } from '../apiserver/certificate.ts'
import { keyRingIn, kubeconfig, reachable } from '../apiserver/data-directory.ts'
import { etcdOf } from '../apiserver/etcd-settings.ts'
import { readSettings } from '../apiserver/settings.ts'
import { UsageError } from '../host/command.ts'
import { writeSecret } from '../host/secret-file.ts'
import { addressOf } from '../serving/address.ts'
import { withAudit } from '../serving/audit-internal.ts'
import { openAuditLog } from '../serving/audit-log.ts'
import { openMetrics } from '../serving/metrics.ts'
import { openStorage } from '../storage/index.ts'

/** The address from the settings, else the one in the existing kubeconfig. */
function serverOf(https: string, file: string): string | undefined {
  if (https !== 'off' && addressOf(https).port !== 0) return reachable(`https://${https}`)
  const before = existsSync(file) ? readFileSync(file, 'utf8') : ''
  return /^ *server: (https:\S+)\/kubernetes\/management$/m.exec(before)?.[1]
}

export async function adminReset(args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const settings = await readSettings(args, env)
  const directory = resolve(settings.data)
  if (!existsSync(directory))
    throw new UsageError([`${directory} does not exist: set --data to the directory of an existing server`])
  const own = settings.tlsCert ? readCertificate(settings) : undefined
  const storage = await openStorage({ engine: settings.storage, directory, now: Date.now, etcd: etcdOf(settings) })
  try {
    const { keys } = keyRingIn({ directory, setting: settings.masterKey, env, mayMake: storage.isEmpty })
    const failed = (_: string, error: unknown) => console.error(error)
    const [now, metrics, sourcesOf] = [Date.now, openMetrics(), () => []]
    const audit = await openAuditLog({ settings, directory, metrics, sourcesOf, now, failed })
    const apiServer = buildApiServer({
      storage,
      keys,
      now,
      failed,
      recorded: internalClient => withAudit(audit, internalClient),
      maxTokenTTL: settings['token.maxTTL'],
      baseUrl: () => settings.baseUrl,
    })
    await apiServer.ready
    const key = await makeAdminKey(apiServer.internalClient, directory)
    apiServer.stop()
    await audit.close()
    const [authority, file] = [join(directory, 'ca.crt'), join(directory, 'admin.kubeconfig')]
    const server = serverOf(settings.https, file)
    if (server && (own || existsSync(authority)))
      writeSecret(file, kubeconfig({ server, ca: own ? own.ca : readFileSync(authority, 'utf8'), key }))
    console.log(
      `The new administrator key is in ${join(directory, 'admin.key')}. Earlier keys are still valid: list them with kubectl get ownedaccesskeys and delete those you no longer need.`,
    )
  } finally {
    await storage.close()
  }
}
