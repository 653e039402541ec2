// People with keys and roles on a server without sockets, whose writes a test can hold back.

import assert from 'node:assert/strict'
import { send } from '../support/direct-http.ts'
import { openDirectServer } from '../support/direct-server.ts'

const base = '/kubernetes/management/apis'
export const ours = `${base}/management.platform.sh/v1`
export const rbac = `${base}/rbac.authorization.k8s.io/v1`
export const secrets = `${ours}/namespaces/default/sharedsecrets`
export const group = 'management.platform.sh'
const merge = 'application/merge-patch+json'

type Answer = { readonly code: number; readonly body: Body; readonly warnings: string }
type Body = {
  readonly metadata: { readonly name: string; readonly uid: string; readonly annotations?: { [key: string]: string } }
  readonly spec: {
    readonly key: string
    readonly data?: { readonly [key: string]: string }
    readonly access?: readonly { readonly teams?: readonly string[] }[]
  }
  readonly items: readonly Body[]
  readonly message: string
}

export async function openPeople() {
  /** Milliseconds that the clock of the server is ahead. */
  const clock = { offset: 0 }
  const disk: { held: Promise<void> | undefined; waiting: number } = { held: undefined, waiting: 0 }
  const { adminKey, handle, close } = await openDirectServer({
    now: () => Date.now() + clock.offset,
    wrapStore: store =>
      new Proxy(store, {
        get: (target, name) => {
          const value = Reflect.get(target, name) as unknown
          if (name !== 'commit') return typeof value === 'function' ? value.bind(target) : value
          return async (...args: Parameters<typeof target.commit>) => {
            // Controllers keep running.
            if (disk.held && args[0].some(({ key }) => key.bucket.includes('sharedsecrets'))) {
              disk.waiting++
              await disk.held
            }
            return target.commit(...args)
          }
        },
      }),
  })
  const person =
    (key: string) =>
    async (method: string, url: string, body?: unknown, type?: string): Promise<Answer> => {
      const headers = {
        authorization: `Bearer ${key}`,
        'content-type': type ?? (method === 'PATCH' ? merge : 'application/json'),
      }
      const answer = await send(handle, { method, url, headers, ...(body ? { body: JSON.stringify(body) } : {}) })
      return {
        code: answer.code,
        body: JSON.parse(answer.text) as Body,
        warnings: answer.warnings ?? '',
      }
    }
  const ask = person(adminKey)
  const admin = async (...args: Parameters<typeof ask>): Promise<Body> => {
    const { code, body } = await ask(...args)
    assert.ok(code < 300, `${args[0]} ${args[1]}: ${code} ${body.message}`)
    return body
  }
  return {
    clock,
    disk,
    person,
    /** As the administrator. `admin` also requires success. */
    ask,
    admin,
    invite: async (user: string) => {
      const { spec, metadata } = await admin('POST', `${ours}/ownedaccesskeys`, {
        metadata: { name: user },
        spec: { user },
      })
      return { name: metadata.name, ask: person(spec.key) }
    },
    /** Binds the rules to a user. Returns the name of role and binding. */
    allow: async (user: string, ...rules: object[]) => {
      const roleRef = { kind: 'ClusterRole', name: `role-of-${user}` }
      await admin('POST', `${rbac}/clusterroles`, { metadata: { name: roleRef.name }, rules })
      const subjects = [{ kind: 'User', name: user }]
      await admin('POST', `${rbac}/clusterrolebindings`, { metadata: { name: roleRef.name }, roleRef, subjects })
      return roleRef.name
    },
    close,
  }
}
export type People = Awaited<ReturnType<typeof openPeople>>
