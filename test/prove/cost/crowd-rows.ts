// Requests of one user that cause work on many objects: watches, followers, dependents. Each stays within the limit of the prover.

import { judge, pieceProblem } from './limits.ts'
import { measure } from './meter.ts'
import type { Row } from './rows.ts'
import type { System } from './system.ts'
import { many, must, user } from './users.ts'

const ours = '/kubernetes/management/apis/management.platform.sh/v1'
const keys = `${ours}/ownedaccesskeys`
const merge = 'application/merge-patch+json'
type Headers = { readonly [name: string]: string }

export const crowdRows: { readonly [what: string]: Row } = {
  'a write of a key or team while its owner has 60 watches on 600 keys': async system => {
    const headers = await userWithKeys(system, 'mallory', 600)
    await ask(system, 'POST', `${ours}/teams`, { metadata: { name: 'crowd' }, spec: { users: ['mallory'] } })
    const watches = Array.from({ length: 60 }, () => system.watch({ method: 'GET', url: `${keys}?watch=1`, headers }))
    await settled()
    const problem = await problemOf([
      () => ask(system, 'POST', keys, { spec: { user: 'mallory' } }),
      () => ask(system, 'DELETE', `${keys}/own-0`),
      () => ask(system, 'PATCH', `${ours}/teams/crowd`, { spec: { users: ['mallory', 'x'] } }, merge),
    ])
    await Promise.all(watches.map(watch => watch.close()))
    return problem
  },
  'a write of a key while 300 secrets follow another one and their owner has 2,000 keys': async system => {
    await userWithKeys(system, 'mallory', 2000)
    await ask(system, 'POST', `${ours}/namespaces/default/sharedsecrets`, {
      metadata: { name: 'source' },
      spec: { access: [{ verbs: ['get'], users: ['mallory'] }] },
    })
    for (let at = 0; at < 300; at++)
      await ask(system, 'POST', `${ours}/namespaces/p-crowd/projectsecrets`, {
        metadata: { name: `follower-${at}` },
        spec: { owner: { user: 'mallory' }, sharedSecretRef: { name: 'source' } },
      })
    await settled()
    return problemOf([() => ask(system, 'POST', keys, { spec: { user: 'other', groups: ['g'] } })])
  },
  'a team with 240 access entries, which become roles and bindings': async system => {
    const entries = (users: number) =>
      Array.from({ length: 240 }, (_, at) => ({
        verbs: ['get'],
        users: Array.from({ length: users }, (__, index) => `user-${at}-${index}`),
      }))
    await ask(system, 'POST', `${ours}/teams`, { metadata: { name: 'wide' }, spec: {} })
    let turn = 0
    const change = async () => {
      await ask(system, 'PATCH', `${ours}/teams/wide`, { spec: { access: entries(39 + (turn++ % 2)) } }, merge)
      await settled()
    }
    return (await judge(undefined, change)).problem
  },
  'a list of secrets by a member of 1,000 teams with the same 245 pull secrets': async system => {
    const secrets = `${ours}/namespaces/default/sharedsecrets`
    const pulls = many(245, at => ({ secretName: `pulled-${at}` }))
    const member = async (name: string, teams: number) => {
      const { ask: send, admin } = await user(system, name)
      for (const at of many(teams, index => index))
        await must(
          admin('POST', `${ours}/teams`, {
            metadata: { name: `${name}-${at}` },
            spec: { users: [name], imagePullSecrets: pulls },
          }),
        )
      // Each change of a team changes the candidates of the list.
      let turn = 0
      return async () => {
        const imagePullSecrets = pulls.slice(turn++ % 2)
        await must(admin('PATCH', `${ours}/teams/${name}-0`, { spec: { imagePullSecrets } }))
        const { text } = await must(send('GET', `${ours}/sharedsecrets`))
        const { length } = (JSON.parse(text) as { items: unknown[] }).items
        if (length !== 245) throw new Error(`the list has ${length} secrets instead of 245`)
      }
    }
    for (const { secretName: name } of pulls) await ask(system, 'POST', secrets, { metadata: { name }, spec: {} })
    return (await judge(await member('half', 500), await member('whole', 1000))).problem
  },
  'a foreground deletion of a cycle of 600 keys': async system => {
    const own = { apiVersion: 'management.platform.sh/v1', kind: 'OwnedAccessKey' }
    const make = async (name: string, owners: readonly Owner[]) => {
      const ownerReferences = owners.map(one => ({ ...own, ...one, blockOwnerDeletion: true }))
      const metadata = { name, ownerReferences, finalizers: ['example.com/keep'] }
      const { text } = await ask(system, 'POST', keys, { metadata, spec: {} })
      return { name, uid: (JSON.parse(text) as { metadata: { uid: string } }).metadata.uid }
    }
    const top = await make('top', [])
    let last = top
    for (let at = 0; at < 600; at++) last = await make(`below-${at}`, last === top ? [top] : [top, last])
    const ownerReferences = [{ ...own, ...last }]
    await ask(system, 'PATCH', `${keys}/top`, { metadata: { ownerReferences } }, merge)
    await settled()
    return problemOf([() => ask(system, 'DELETE', `${keys}/top?propagationPolicy=Foreground`)])
  },
}

type Owner = { readonly name: string; readonly uid: string }

/** The longest piece of several operations, including their effects. */
async function problemOf(works: readonly (() => Promise<unknown>)[]): Promise<string | undefined> {
  let longest = 0
  for (const work of works) {
    const cost = await measure(async () => {
      await work()
      await settled()
    })
    longest = Math.max(longest, cost.longest)
  }
  return pieceProblem({ longest, total: 0 })
}

async function userWithKeys(system: System, user: string, count: number): Promise<Headers> {
  for (let at = 0; at < count; at++)
    await ask(system, 'POST', keys, { metadata: { name: `own-${at}` }, spec: { user } })
  const { text } = await ask(system, 'POST', keys, { spec: { user } })
  return { authorization: `Bearer ${(JSON.parse(text) as { spec: { key: string } }).spec.key}` }
}

function ask(system: System, method: string, url: string, body?: unknown, type = 'application/json') {
  const headers = { authorization: `Bearer ${system.adminKey}`, 'content-type': type }
  return system.ask({ method, url, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
}

/** Watches, controllers and the garbage collector run in later turns of the event loop. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 500; turn++) await new Promise(setImmediate)
}
