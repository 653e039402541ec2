// Requests that once stalled the server or filled its memory. Now it rejects them or handles them within the limits. With its fix reverted, each fails (cost-bugs.ts). Two rows of memory-rows.ts search without a known bug.

import { crowdRows } from './crowd-rows.ts'
import { countDecryptions } from './decryptions.ts'
import { grantRows } from './grant-rows.ts'
import { keyRows } from './key-rows.ts'
import { judge, pieceProblem } from './limits.ts'
import { longNameRows } from './long-name-rows.ts'
import { managedRows } from './managed-rows.ts'
import { memoryRows } from './memory-rows.ts'
import { measure } from './meter.ts'
import { writeProtobuf } from './protobuf.ts'
import { roleRows } from './role-rows.ts'
import { scopeRows } from './scope-rows.ts'
import { signInRows } from './sign-in-rows.ts'
import type { System } from './system.ts'
import { unstoredRows } from './unstored-rows.ts'
import { userRows } from './user-rows.ts'

/** The problem; undefined: none. */
export type Row = (system: System) => Promise<string | undefined>

const ours = '/kubernetes/management/apis/management.platform.sh/v1'
const clusterRoles = '/kubernetes/management/apis/rbac.authorization.k8s.io/v1/clusterroles'
const merge = 'application/merge-patch+json'

/** The rows of writes, lists and watches by one user. */
const ownRows: { readonly [what: string]: Row } = {
  '40,000 empty finalizers in protobuf': async system => {
    const body = (count: number) =>
      writeProtobuf({
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { finalizers: many(count, () => '') },
      }) as Buffer
    const send = (count: number) => {
      const bytes = body(count)
      return () => ask(system, 'POST', clusterRoles, bytes, 'application/vnd.kubernetes.protobuf')
    }
    return (await judge(send(20_000), send(40_000))).problem
  },
  'a key with 4,000 scope.rules, then a patch': storedThenPatched(4000, at => ({
    spec: { scope: { rules: many(at, index => ({ verbs: ['get'], namespaces: [`n${index}`] })) } },
  })),
  'a key with 15,000 scope.projects, then a patch': storedThenPatched(15_000, at => ({
    spec: { scope: { projects: many(at, index => ({ project: `p${index}` })) } },
  })),
  'a key with 60,000 labels, then one label changed': storedThenPatched(60_000, at => ({
    metadata: { labels: Object.fromEntries(many(at, index => [`k${index}`, 'v'])) },
  })),
  '40 filtered lists among 300 secrets of 200 KB': async system => {
    const headers = await amongLargeSecrets(system, 300)
    const list = async () => {
      const { text } = await system.ask({ method: 'GET', url: `${ours}/sharedsecrets`, headers })
      if ((JSON.parse(text) as { items: unknown[] }).items.length) throw new Error('the list shows secrets of others')
    }
    const decrypted = await countDecryptions(async () => {
      for (let count = 0; count < 40; count++) await list()
    })
    if (decrypted) return `${decrypted} secrets of others were decrypted`
    const { problem } = await judge(undefined, list)
    return problem
  },
  '20 filtered watches and one patch': async system => {
    const headers = await amongLargeSecrets(system, 20)
    let turn = 0
    const patch = () =>
      ask(
        system,
        'PATCH',
        `${ours}/namespaces/default/sharedsecrets/large-0`,
        { spec: { description: `${turn++}` } },
        merge,
      )
    const alone = await countDecryptions(patch)
    const watches = many(20, () => system.watch({ method: 'GET', url: `${ours}/sharedsecrets?watch=1`, headers }))
    await settled()
    const together = await countDecryptions(async () => {
      await patch()
      await settled()
    })
    const cost = await measure(async () => {
      await patch()
      await settled()
    })
    await Promise.all(watches.map(watch => watch.close()))
    if (watches.some(watch => watch.text() !== '')) return 'a watch shows secrets of others'
    if (together > alone) return `${together - alone} decryptions for watches that show nothing`
    return pieceProblem(cost)
  },
}

/** The rows of large roles and of many objects, whose set-up takes longest. */
const largeRows: { readonly [what: string]: Row } = {
  ...roleRows,
  ...crowdRows,
  ...userRows,
  ...keyRows,
  ...longNameRows,
}

export const rows: { readonly [what: string]: Row } = {
  ...ownRows,
  ...managedRows,
  ...grantRows,
  ...scopeRows,
  ...signInRows,
  ...unstoredRows,
  ...memoryRows,
  ...largeRows,
}

const many = <T>(count: number, make: (at: number) => T) =>
  Array.from({ length: Math.floor(count) }, (_, at) => make(at))

const headersOf = (key: string, type = 'application/json') => ({ authorization: `Bearer ${key}`, 'content-type': type })

async function ask(system: System, method: string, url: string, body: unknown, type = 'application/json') {
  const bytes = body instanceof Uint8Array ? body : JSON.stringify(body)
  return system.ask({ method, url, headers: headersOf(system.adminKey, type), body: bytes })
}

/** Waits until all effects of a request have run: watches handle their events in later turns of the event loop. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
}

/** A server that stores this many objects must also change them cheaply. If it rejects them, the rejection is measured. */
function storedThenPatched(count: number, make: (count: number) => object): Row {
  return async system => {
    const store = async (size: number) => {
      const name = `row-${size}-${Object.keys(make(1)).join('')}-${JSON.stringify(make(1)).length}`
      const object = make(size) as { metadata?: object }
      const body = JSON.stringify({ ...object, metadata: { ...object.metadata, name } })
      const create = () => ask(system, 'POST', `${ours}/ownedaccesskeys`, Buffer.from(body))
      const { code } = await create()
      if (code !== 201) return create
      let turn = 0
      return () =>
        ask(system, 'PATCH', `${ours}/ownedaccesskeys/${name}`, { metadata: { labels: { k1: `${turn++}` } } }, merge)
    }
    return (await judge(await store(count / 2), await store(count))).problem
  }
}

/** Large secrets of others, and the headers of a user who may see none of them. */
async function amongLargeSecrets(system: System, count: number): Promise<{ readonly [name: string]: string }> {
  const data = { a: Buffer.alloc(200_000).toString('base64') }
  // The user may update them. So the index finds them, and the filter leaves them out.
  const access = [{ verbs: ['update'], users: ['mallory'] }]
  for (let at = 0; at < count; at++)
    await ask(system, 'POST', `${ours}/namespaces/default/sharedsecrets`, {
      metadata: { name: `large-${at}` },
      spec: { data, access },
    })
  const { text } = await ask(system, 'POST', `${ours}/ownedaccesskeys`, { spec: { user: 'mallory' } })
  return { authorization: `Bearer ${(JSON.parse(text) as { spec: { key: string } }).spec.key}` }
}
