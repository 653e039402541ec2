// Users of the cost prover, and the permissions that rows give them.

import type { System } from './system.ts'

export const ours = '/kubernetes/management/apis/management.platform.sh/v1'
export const rbac = '/kubernetes/management/apis/rbac.authorization.k8s.io/v1'

export const many = <T>(count: number, make: (at: number) => T) => Array.from({ length: count }, (_, at) => make(at))
export const words = (count: number) => many(count, at => `word-${at}`)

type Asked = Promise<{ readonly code: number; readonly text: string }>
type Ask = (method: string, url: string, body?: object) => Asked
export type User = { readonly name: string; readonly ask: Ask; readonly admin: Ask }

/** `scope`: of the key of the user. */
export async function user(system: System, name: string, scope?: object): Promise<User> {
  const as =
    (key: string): Ask =>
    (method, url, body) => {
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const headers = { authorization: `Bearer ${key}`, 'content-type': type }
      return system.ask({ method, url, headers, ...(body ? { body: JSON.stringify(body) } : {}) })
    }
  const admin = as(system.adminKey)
  const { text } = await must(admin('POST', `${ours}/ownedaccesskeys`, { spec: { user: name, scope } }))
  return { name, ask: as((JSON.parse(text) as { spec: { key: string } }).spec.key), admin }
}

/** Gives the user these permissions everywhere. */
export async function bind({ name: user, admin }: User, rules: readonly object[]): Promise<void> {
  const { text } = await must(admin('POST', `${rbac}/clusterroles`, { metadata: { generateName: 'role-' }, rules }))
  const { name } = (JSON.parse(text) as { metadata: { name: string } }).metadata
  const roleRef = { kind: 'ClusterRole', name }
  const subjects = [{ kind: 'User', name: user }]
  await must(admin('POST', `${rbac}/clusterrolebindings`, { metadata: { name }, roleRef, subjects }))
}

export async function must(asked: Asked) {
  const { code, text } = await asked
  if (code >= 300) throw new Error(`${code}: ${text.slice(0, 500)}`)
  return { code, text }
}

export async function refused(asked: Asked): Promise<void> {
  const { code, text } = await asked
  if (code !== 403) throw new Error(`${code} instead of 403: ${text.slice(0, 500)}`)
}
