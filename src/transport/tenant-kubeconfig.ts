// Rejects fields of a tenant's kubeconfig that access the machine that reads it. docs/SYNCER.md lists the decision for each field.

import type { JsonObject } from '../api/object.ts'

export type TenantRules = {
  /** Named in messages: --allow-exec SIDE. */
  readonly side: string
  readonly allowExec: boolean
  readonly allowFiles: boolean
}

export type TenantParts = {
  readonly clusterName: string
  readonly cluster: JsonObject
  readonly userName: string
  readonly user: JsonObject
}

const maxShown = 64

/** Shortens names from the file to one line, so that they cannot hide the message. */
function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : ''
  return JSON.stringify(text.length > maxShown ? `${text.slice(0, maxShown)}…` : text)
}

const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== ''

export function tenantProblems(parts: TenantParts, rules: TenantRules): readonly string[] {
  const { clusterName, cluster, userName, user } = parts
  const owner = `user ${shown(userName)}`
  const problems: string[] = []
  if (isSet(user['exec']) && !rules.allowExec)
    problems.push(
      `${owner} runs the command ${shown((user['exec'] as JsonObject)['command'])} (exec), but a tenant's kubeconfig must not run programs on the host: ` +
        `use a token or a client certificate, or --allow-exec ${rules.side} if you trust the file`,
    )
  if (isSet(user['auth-provider']))
    problems.push(
      `${owner} has the auth-provider ${shown((user['auth-provider'] as JsonObject)['name'])}, which is not supported: use a token or a client certificate`,
    )
  if (!rules.allowFiles) problems.push(...fileProblems(parts, rules.side))
  if (isSet(cluster['proxy-url']))
    problems.push(
      `cluster ${shown(clusterName)} sets a proxy (proxy-url), but only the operator of the host may choose proxies: remove it and set HTTPS_PROXY for the syncer`,
    )
  return problems
}

/** The server gets the content of a token file and of a client certificate, and a signature by the key. */
function fileProblems({ clusterName, cluster, userName, user }: TenantParts, side: string): string[] {
  const [inCluster, inUser] = [`cluster ${shown(clusterName)}`, `user ${shown(userName)}`]
  const fields = [
    { where: inCluster, from: cluster, key: 'certificate-authority', inline: 'certificate-authority-data' },
    { where: inUser, from: user, key: 'client-certificate', inline: 'client-certificate-data' },
    { where: inUser, from: user, key: 'client-key', inline: 'client-key-data' },
    { where: inUser, from: user, key: 'tokenFile', inline: 'token' },
  ]
  return fields
    .filter(({ from, key, inline }) => isSet(from[key]) && !(inline.endsWith('-data') && isSet(from[inline])))
    .map(
      ({ where, from, key, inline }) =>
        `${where} names the file ${shown(from[key])} (${key}), but a tenant's kubeconfig must not read files of the host: ` +
        `use ${inline}, or --allow-files ${side} if you trust the file`,
    )
}
