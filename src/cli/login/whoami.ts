// `platform whoami` and `platform status`: who one is to the server, with which key, for how long, and whether it answers.

import { X509Certificate } from 'node:crypto'
import { ApiError } from '../../api/errors.ts'
import { defineCommand } from '../../host/command.ts'
import { plain } from '../../host/sanitize.ts'
import { contextFlag, outputFlag } from '../flags.ts'
import { paint, printJson } from '../print.ts'
import { openSession, type Session } from '../session.ts'
import { type Me, meOf } from './identity.ts'
import { fingerprintOf } from './trust.ts'

const unreadMark = 'not told to a key with this scope; its owner sees them in platform whoami'

export const whoami = defineCommand({
  words: ['whoami'],
  what: 'Say who you are to the server: key, teams and why, scope, expiry.',
  examples: [
    { what: 'Look', command: 'platform whoami' },
    { what: 'Just the name, for scripts', command: 'platform whoami -o name' },
  ],
  flags: { ...contextFlag, output: { ...outputFlag.output, choices: ['table', 'json', 'yaml', 'name'] } },
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

function linesOf({ user, teams, groups = [], key }: Me, { server, context }: Session): (readonly [string, string])[] {
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
    ...(teams?.map(({ name, because }) => ['Team', `${name} (${because})`] as const) ?? [
      ['Teams', unreadMark] as const,
    ]),
    ...(others.length ? ([['Groups', others.join(', ')]] as const) : []),
  ]
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
      line('User', plain(me?.user ?? 'the key’s scope does not cover that question'))
      if (me?.key) line('Key', plain(`${me.key.name}, expires ${me.key.expires}`))
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
