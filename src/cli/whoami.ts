// `platform whoami` and `platform status`: who one is to the server, with which key, for how long, and whether it answers.

import { X509Certificate } from 'node:crypto'
import { ApiError } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { SelfSubjectReview } from '../kinds/reviews.ts'
import { Team } from '../kinds/team.ts'
import { defineCommand } from './command.ts'
import { contextFlag } from './flags.ts'
import { expiryOf, expiryText, scopeText } from './key-facts.ts'
import { plain } from './plain.ts'
import { paint, printJson, span } from './print.ts'
import { refusedScope } from './refused.ts'
import { openSession, type Session } from './session.ts'
import { fingerprintOf } from './trust.ts'

const everything = 'everything its owner may'

const jsonFlag = {
  output: {
    type: 'text',
    short: 'o',
    value: 'FORM',
    what: 'How to print.',
    choices: ['table', 'json', 'yaml', 'name'],
  },
} as const

type Me = {
  readonly user: string
  readonly groups: readonly string[]
  readonly teams: readonly { readonly name: string; readonly because: string }[]
  readonly key?: {
    readonly name: string
    readonly scope: string
    readonly expires: string
    readonly expiresAt?: string
  }
}

export const whoami = defineCommand({
  words: ['whoami'],
  what: 'Say who you are to the server: key, teams and why, scope, expiry.',
  examples: [
    { what: 'Look', command: 'platform whoami' },
    { what: 'Just the name, for scripts', command: 'platform whoami -o name' },
  ],
  flags: { ...contextFlag, ...jsonFlag },
  run: async ({ flags }, io) => {
    const session = await openSession(io, flags)
    try {
      const me = await meOf(session, io.now())
      if (flags.output === 'name') io.out(`${me.user}\n`)
      else if (flags.output === 'json' || flags.output === 'yaml')
        printJson(io, { server: session.server, ...me }, flags.output)
      else
        for (const [name, text] of linesOf(me, session))
          io.out(`${paint(io, 'bold', `${name}:`.padEnd(10))} ${plain(text)}\n`)
      return 0
    } finally {
      session.close()
    }
  },
})

function linesOf({ user, teams, groups, key }: Me, { server, context }: Session): (readonly [string, string])[] {
  const others = groups.filter(group => !/^platform:(team|user):|^system:authenticated$/.test(group))
  return [
    ['User', user],
    ['Server', `${server}${context ? ` (context ${context})` : ''}`],
    ...(key
      ? ([
          ['Key', key.name],
          ['Scope', key.scope],
          ['Expires', key.expires],
        ] as const)
      : []),
    ...teams.map(({ name, because }) => ['Team', `${name} (${because})`] as const),
    ...(others.length ? ([['Groups', others.join(', ')]] as const) : []),
  ]
}

/** A key that may not ask who it is learns it from the refusal. */
async function meOf(session: Session, now: number): Promise<Me> {
  try {
    return await reviewed(session, now)
  } catch (error) {
    const refused = refusedScope(error)
    if (!refused) throw error
    const unknown = 'too narrow to be told; its owner sees it in platform list accesskeys'
    return {
      user: refused.user,
      groups: [],
      teams: [],
      key: { name: refused.key, scope: unknown, expires: unknown },
    }
  }
}

async function reviewed({ resources }: Session, now: number): Promise<Me> {
  const { object } = await resources.create(SelfSubjectReview, '', {})
  const info = (object.status?.['userInfo'] ?? {}) as {
    username?: string
    groups?: string[]
    extra?: { [name: string]: string[] }
  }
  const { username = '', groups = [], extra = {} } = info
  const read = (kind: Kind, name: string) =>
    resources.get(kind, { namespace: '', name }).then(
      found => found.object,
      error => {
        if (error instanceof ApiError && [403, 404].includes(error.code)) return undefined
        throw error
      },
    )
  const names = groups
    .filter(group => group.startsWith('platform:team:'))
    .map(group => group.slice('platform:team:'.length))
  const keyName = extra['authentication.platform.sh/key']?.[0]
  const [key, ...teams] = await Promise.all([
    keyName === undefined ? undefined : read(OwnedAccessKey, keyName),
    ...names.map(async name => ({
      name,
      because:
        username === `platform:team:${name}`
          ? 'this is a key of the team'
          : becauseOf(await read(Team, name), username, groups),
    })),
  ])
  return {
    user: username,
    groups,
    teams,
    ...(keyName === undefined ? {} : { key: { name: keyName, ...(key ? factsOf(key, now) : toldOf(extra, now)) } }),
  }
}

/** For keys that may not read their own object: what the server says beside who one is. */
function toldOf(extra: { readonly [name: string]: readonly string[] }, now: number) {
  const [scope] = extra['authentication.platform.sh/scope'] ?? []
  const [left] = extra['authentication.platform.sh/key-ends-in'] ?? []
  return {
    scope: (scope === undefined ? undefined : scopeText(JSON.parse(scope))) ?? everything,
    expires: left === undefined ? 'never' : `in ${span(Number(left))}`,
    ...(left === undefined ? {} : { expiresAt: new Date(now + Number(left) * 1000).toISOString() }),
  }
}

function factsOf(key: Resource, now: number) {
  const at = expiryOf(key)
  return {
    scope: scopeText(key.spec?.['scope']) ?? everything,
    expires: expiryText(key, now),
    ...(at === undefined ? {} : { expiresAt: new Date(at).toISOString() }),
  }
}

function becauseOf(team: Resource | undefined, user: string, groups: readonly string[]): string {
  const { users = [], groups: shared = [] } = (team?.spec ?? {}) as { users?: string[]; groups?: string[] }
  if (users.includes(user)) return 'listed by name'
  const group = shared.find(one => groups.includes(one))
  return group === undefined ? 'as the server says' : `through group ${group}`
}

export const status = defineCommand({
  words: ['status'],
  what: 'Say whether the server answers, whom it is trusted by, and whether you are signed in.',
  examples: [{ what: 'In a script: 0 fine, 4 not signed in, 7 not there', command: 'platform status' }],
  flags: contextFlag,
  run: async ({ flags }, io) => {
    const session = await openSession(io, flags)
    const line = (name: string, text: string) => io.out(`${paint(io, 'bold', `${name}:`.padEnd(10))} ${text}\n`)
    try {
      line('Server', session.server)
      line('Trust', trustText(session))
      const before = performance.now()
      await session.fetch(`${session.server}/livez`, {})
      line('Answers', paint(io, 'green', `yes, in ${Math.round(performance.now() - before)} ms`))
      const me = await meOf(session, io.now()).catch(error => {
        if (error instanceof ApiError && error.code === 403) return undefined
        throw error
      })
      line('User', me?.user ?? 'the key’s scope does not cover that question')
      if (me?.key) line('Key', `${me.key.name}, expires ${me.key.expires}`)
      return 0
    } finally {
      session.close()
    }
  },
})

function trustText({ server, ca }: Session): string {
  if (server.startsWith('http:')) return 'not encrypted, on this machine alone'
  return ca ? `CA ${fingerprintOf(new X509Certificate(ca))}` : 'by the authorities that this machine trusts'
}
