// `platform whoami` and `platform status`: shows the caller's identity and key, and whether the server responds.

import { X509Certificate } from 'node:crypto'
import { ApiError } from '../../api/errors.ts'
import { defineCommand } from '../../host/command.ts'
import { plain } from '../../host/sanitize.ts'
import { contextFlag, outputFlag } from '../flags.ts'
import { paint, printJson } from '../print.ts'
import { openSession, type Session } from '../session.ts'
import { type Identity, identityOf } from './identity.ts'
import { fingerprintOf } from './trust.ts'

export const whoami = defineCommand({
  words: ['whoami'],
  what: 'Show your identity on the server: user, key, scope, expiry and teams.',
  examples: [
    { what: 'Show everything', command: 'platform whoami' },
    { what: 'Only the name, for scripts', command: 'platform whoami -o name' },
  ],
  flags: { ...contextFlag, output: { ...outputFlag.output, choices: ['table', 'json', 'yaml', 'name'] } },
  run: async ({ flags }, io) => {
    const session = await openSession(io, flags)
    try {
      const identity = await identityOf(session, io.now())
      if (flags.output === 'name') io.out(`${identity.user}\n`)
      else if (flags.output === 'json' || flags.output === 'yaml')
        printJson(io, { server: session.server, ...identity }, flags.output)
      else
        for (const [name, text] of linesOf(identity, session))
          io.out(`${paint(io, 'bold', `${name}:`.padEnd(10))} ${plain(text)}\n`)
      return 0
    } finally {
      session.close()
    }
  },
})

function linesOf(
  { user, teams, groups, key, session }: Identity,
  { server, context }: Session,
): (readonly [string, string])[] {
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
    ...(session ? ([['Provider', session.provider]] as const) : []),
    ...teams.map(({ name, because }) => ['Team', `${name} (${because})`] as const),
    ...(others.length ? ([['Groups', others.join(', ')]] as const) : []),
  ]
}

export const status = defineCommand({
  words: ['status'],
  what: 'Show whether the server responds, which CA you trust for it, and whether you are signed in.',
  examples: [{ what: 'In a script: exit code 0 ok, 4 not signed in, 7 unreachable', command: 'platform status' }],
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
      const identity = await identityOf(session, io.now()).catch(error => {
        if (error instanceof ApiError && error.code === 403) return undefined
        throw error
      })
      line('User', plain(identity?.user ?? 'not visible to a key with this scope'))
      if (identity?.key) line('Key', plain(`${identity.key.name}, expires ${identity.key.expires}`))
      return 0
    } finally {
      session.close()
    }
  },
})

function trustText({ server, ca }: Session): string {
  if (server.startsWith('http:')) return 'not encrypted (loopback only)'
  return ca ? `CA ${fingerprintOf(new X509Certificate(ca))}` : 'CAs of this machine'
}
