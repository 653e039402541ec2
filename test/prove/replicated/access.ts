// Users whose access is granted and taken away again, in one of four ways, while they read through all replicas.
//
// After the revocation was acknowledged, an administrator writes to the secret. The user must never see that. A read that began
// after the revocation is rejected; with resourceVersion=0 this holds five seconds later. Deleted keys are tried again and again.

import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type { LeanAnswer, LeanClient, LeanOptions } from '../lean-client.ts'
import type { Violation } from '../recording.ts'
import { type Dice, diceOf } from '../seeded-random.ts'
import type { Tape } from '../traffic.ts'
import { openBalancer } from './moving-client.ts'

const root = '/kubernetes/management/apis'
const keys = `${root}/management.platform.sh/v1/ownedaccesskeys`
const secrets = `${root}/management.platform.sh/v1/namespaces/default/sharedsecrets`
const group = 'readers'
const rbac = `${root}/rbac.authorization.k8s.io/v1/namespaces/default`
const merge = 'application/merge-patch+json'

/** The revoked thing: the access entry of the secret, a role binding, a group of the access key, or the key. */
const ways = ['entry', 'binding', 'group', 'key'] as const
type Way = (typeof ways)[number]

/** One read of the user. `value`: what it showed; undefined: it was rejected. */
type Read = {
  readonly since: number
  readonly end: number
  readonly path: string
  readonly value: string | undefined
}
/** Ticks. */
type Turn = { granted: number; revoking: number; revoked: number; readonly reads: Read[] }

export type Access = {
  readonly violations: readonly Violation[]
  readonly reads: number
  stop(): Promise<void>
}

export async function disturbAccess(replicas: readonly LeanOptions[], tape: Tape, seed: string): Promise<Access> {
  const violations: Violation[] = []
  let reads = 0
  let isOver = false
  const deleted: { readonly key: string; readonly path: string; readonly revoked: number }[] = []
  const balancer = openBalancer(replicas, diceOf(`${seed}/administrators`))

  async function prepare(way: Way, { insist }: Administrator): Promise<void> {
    const name = `secret-${way}`
    const subjects = way === 'group' ? [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: group }] : []
    const access = way === 'key' ? [entryOf(way)] : []
    await insist('POST', secrets, { metadata: { name }, spec: { description: 'new', data: { a: 'MQ==' }, access } })
    if (way !== 'binding' && way !== 'group') return
    const rule = {
      apiGroups: ['management.platform.sh'],
      resources: ['sharedsecrets'],
      resourceNames: [name],
      verbs: ['get', 'list', 'watch'],
    }
    await insist('POST', `${rbac}/roles`, { metadata: { name }, rules: [rule] })
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name }
    await insist('POST', `${rbac}/rolebindings`, { metadata: { name }, roleRef, subjects })
  }

  async function takeTurn(way: Way, number: number, roll: Dice, { insist, patch }: Administrator): Promise<void> {
    const name = `secret-${way}`
    const [secret, binding, user] = [`${secrets}/${name}`, `${rbac}/rolebindings/${name}`, userOf(way)]
    const groups = way === 'group' ? [group] : []
    const description = `${shown}${number}`
    await patch(secret, { spec: { description, ...(way === 'entry' ? { access: [entryOf(way)] } : {}) } })
    const created = await insist('POST', keys, { metadata: { generateName: 'prover-' }, spec: { user, groups } })
    const key = JSON.parse(created.text) as { metadata: { name: string }; spec: { key: string } }
    const subject = { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }
    if (way === 'binding') await patch(binding, { subjects: [subject] })

    const turn: Turn = { granted: tape.tick(), revoking: 0, revoked: 0, reads: [] }
    const end = new AbortController()
    const reader = openBalancer(
      replicas.map(replica => ({ ...replica, key: key.spec.key })),
      roll,
    )
    const readers = [
      read(reader.connect(2500), secret, turn, roll, end.signal),
      read(reader.connect(8000), `${secrets}?limit=50`, turn, roll, end.signal, name),
      ...replicas.map(() => watch(reader.connect(8000), user, end.signal)),
    ]
    try {
      await pause(50 + roll(roll(2) ? 300 : 1200))
      turn.revoking = tape.tick()
      if (way === 'entry') await patch(secret, { spec: { access: null } })
      else if (way === 'binding') await patch(binding, { subjects: [] })
      else if (way === 'group') await patch(`${keys}/${key.metadata.name}`, { spec: { groups: [] } })
      else await insist('DELETE', `${keys}/${key.metadata.name}`)
      turn.revoked = tape.tick()
      if (way === 'key') deleted.push({ key: key.spec.key, path: secret, revoked: turn.revoked })
      await patch(secret, { spec: { description: `${hidden}${number}` } })
      // Sometimes until reads of any version must be rejected, too.
      await pause(roll(10) ? 50 + roll(roll(2) ? 300 : 1200) : 6500)
    } finally {
      end.abort()
      await Promise.all(readers)
    }
    if (way !== 'key') await insist('DELETE', `${keys}/${key.metadata.name}`)
    reads += turn.reads.length
    for (const one of turn.reads) {
      const problem = problemOf(one, turn)
      if (problem) violations.push({ rule: problem.rule, text: `${user} (${way}) ${problem.text}` })
    }
  }

  async function read(client: LeanClient, path: string, turn: Turn, roll: Dice, end: AbortSignal, name?: string) {
    while (!end.aborted) {
      const isAny = roll(3) === 0
      const since = isAny ? (tape.oldest?.() ?? 0) : tape.tick()
      const version = isAny ? `${path.includes('?') ? '&' : '?'}resourceVersion=0` : ''
      const answer = await client.ask('GET', path + version).catch(() => undefined)
      const read = answer && readOf(answer, name)
      if (read) turn.reads.push({ since, end: tape.tick(), path: path + version, ...read })
      await pause(roll(20))
    }
    client.close()
  }

  async function watch(client: LeanClient, user: string, end: AbortSignal): Promise<void> {
    end.addEventListener('abort', () => client.close())
    while (!end.aborted) {
      await client
        .follow(`${secrets}?watch=1&timeoutSeconds=5`, line => {
          const { type, object } = JSON.parse(line) as { readonly type: string; readonly object: Item }
          if (object.spec?.description.startsWith(hidden))
            violations.push({
              rule: 'authorization',
              text: `${user} got ${type} of “${object.spec.description}” from a watch`,
            })
        })
        .catch(() => {})
      await pause(50)
    }
  }

  /** Reads with a deleted key, most often with one of the last. */
  async function tryDeleted(roll: Dice): Promise<void> {
    while (!isOver) {
      const one = deleted.at(-1 - (roll(3) ? 0 : roll(Math.min(10, deleted.length + 1))))
      if (one) {
        const client = openBalancer(
          replicas.map(replica => ({ ...replica, key: one.key })),
          roll,
        ).connect(2500)
        const since = tape.tick()
        const answer = await client.ask('GET', one.path).catch(() => undefined)
        client.close()
        reads++
        if (answer?.code === 200)
          violations.push({ rule: 'revocation', text: `a key that was deleted at ${one.revoked} was used at ${since}` })
      }
      await pause(roll(10))
    }
  }

  const running = [1, 2, 3].map(number => tryDeleted(diceOf(`${seed}/deleted keys ${number}`)))
  for (const way of ways) {
    const administrator = openAdministrator(balancer.connect(5000))
    await prepare(way, administrator)
    const run = async () => {
      const roll = diceOf(`${seed}/${way}`)
      try {
        for (let number = 0; !isOver; number++) await takeTurn(way, number, roll, administrator)
      } catch (error) {
        violations.push({ rule: 'answer', text: `${way}: ${(error as Error).message}` })
      }
      administrator.close()
    }
    running.push(run())
  }
  return {
    violations,
    get reads() {
      return reads
    },
    async stop() {
      isOver = true
      await Promise.all(running)
    },
  }
}

type Administrator = ReturnType<typeof openAdministrator>

function openAdministrator(client: LeanClient) {
  /** Repeats a request until it has certainly happened. */
  async function insist(method: string, path: string, body?: object): Promise<LeanAnswer> {
    for (;;) {
      const answer = await client.ask(method, path, body && JSON.stringify(body)).catch(() => undefined)
      if (answer && answer.code < 300) return answer
      if (answer?.code === 404 && method === 'DELETE') return answer
      if (answer && answer.code < 500 && answer.code !== 409) assert.fail(`${method} ${path}: ${answer.text}`)
      await pause(50)
    }
  }
  /** With the version of the object: an earlier attempt that arrives late must not undo what happened since. */
  async function patch(path: string, body: object): Promise<void> {
    for (;;) {
      const { text } = await insist('GET', path)
      const { resourceVersion } = (JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata
      const change = JSON.stringify({ ...body, metadata: { resourceVersion } })
      const answer = await client.ask('PATCH', path, change, merge).catch(() => undefined)
      if (answer && answer.code < 300) return
      if (answer && answer.code < 500 && answer.code !== 409) assert.fail(`PATCH ${path}: ${answer.text}`)
      await pause(50)
    }
  }
  return { insist, patch, close: client.close }
}

const userOf = (way: Way) => `user-${way}`
const entryOf = (way: Way) => ({ name: 'reader', users: [userOf(way)], verbs: ['get', 'list', 'watch'] })

const [shown, hidden] = ['shown to users ', 'hidden from users ']

type Item = { readonly metadata: { readonly name: string }; readonly spec?: { readonly description: string } }

/** undefined: the answer says nothing about access. */
function readOf({ code, text }: LeanAnswer, name: string | undefined): Pick<Read, 'value'> | undefined {
  if (code === 401 || code === 403) return { value: undefined }
  if (code !== 200) return undefined
  const body = JSON.parse(text) as Item & { readonly items: readonly Item[] }
  const found = name === undefined ? body : body.items.find(item => item.metadata.name === name)
  return { value: found?.spec?.description }
}

function problemOf({ since, end, path, value }: Read, { granted, revoking, revoked }: Turn): Violation | undefined {
  const when = `in GET ${path} from ${since} to ${end}; granted at ${granted}, revoked from ${revoking} to ${revoked}`
  if (value?.startsWith(hidden)) return { rule: 'authorization', text: `saw “${value}” ${when}` }
  if (value !== undefined && since > revoked)
    return { rule: 'revocation', text: `saw “${value}” after the revocation ${when}` }
  if (value === undefined && since > granted && end < revoking)
    return { rule: 'permission', text: `was rejected although access had been granted ${when}` }
  return undefined
}
