// `platform auth explain-token`: shows why the server accepts or rejects a token of an external issuer.

import { ApiError } from '../../api/errors.ts'
import { defineCommand, type Io, UsageError } from '../../host/command.ts'
import { plain, quoted } from '../../host/sanitize.ts'
import { AccessExplanation } from '../../kinds/subject-reviews.ts'
import { contextFlag, outputFlag } from '../flags.ts'
import { paint, printJson, printTable } from '../print.ts'
import { openSession } from '../session.ts'

type Check = {
  readonly name?: string
  readonly rule?: string
  readonly passed?: boolean
  readonly message?: string
  readonly found?: readonly string[]
  readonly configured?: readonly string[]
}

type Explained = {
  readonly accepted?: boolean
  readonly issuer?: string
  readonly checks?: readonly Check[]
  readonly user?: string
  readonly uid?: string
  readonly groups?: readonly string[]
  readonly extra?: { readonly [name: string]: readonly string[] }
  readonly scope?: object
}

export const explainToken = defineCommand({
  words: ['auth', 'explain-token'],
  what: 'Explain why the server accepts or rejects a token of an external issuer, without using it: exit code 0 accepted, 1 rejected.',
  examples: [
    { what: 'A token in a file', command: 'platform auth explain-token token.jwt' },
    { what: 'From standard input, for scripts', command: 'platform auth explain-token - -o json' },
  ],
  flags: { ...contextFlag, output: { ...outputFlag.output, choices: ['json', 'yaml'] } },
  positionals: [{ name: 'FILE', what: 'the file with the token; - is standard input' }],
  run: async ({ flags, words: [file = ''] }, io) => {
    const token = await readToken(file, io)
    const session = await openSession(io, flags)
    try {
      const { object } = await session.resources.create(AccessExplanation, '', { spec: { token } })
      const explained = object.status?.['token'] as Explained | undefined
      if (!explained)
        throw new ApiError(501, 'NotImplemented', 'the server does not explain tokens: its version is too old')
      if (flags.output) printJson(io, explained, flags.output)
      else print(explained, io)
      return explained.accepted ? 0 : 1
    } finally {
      session.close()
    }
  },
})

/** Signed tokens have three parts, encrypted ones five. */
const jwtForm = /^[\w-]+(\.[\w-]*){2,4}$/

/** Never repeats the content, which may be another secret. */
async function readToken(file: string, io: Io): Promise<string> {
  // The error of a missing file would repeat it.
  if (/^(bearer\s+)?eyJ/i.test(file))
    throw new UsageError(['platform auth explain-token expects a file, or - for standard input, not the token itself'])
  const token = new TextDecoder().decode(await io.readFile(file)).trim()
  if (jwtForm.test(token)) return token
  const source = file === '-' ? 'standard input' : `file ${quoted(file)}`
  throw new UsageError([`${source}: the content is not a JWT; it was not sent`])
}

function print({ accepted, issuer, checks = [], ...identity }: Explained, io: Io): void {
  const verdict = accepted ? paint(io, 'green', 'accepted') : paint(io, 'red', 'rejected')
  io.out(`${verdict}${issuer === undefined ? '' : ` (issuer ${plain(issuer)})`}\n\n`)
  const rows = checks.map(check => [check.name ?? '', check.passed ? 'passed' : 'failed', detailOf(check)])
  printTable(io, ['CHECK', 'RESULT', 'DETAIL'], rows)
  const lines = linesOf(identity)
  if (lines.length) io.out('\n')
  for (const [name, text] of lines) io.out(`${paint(io, 'bold', `${name}:`.padEnd(8))} ${plain(text)}\n`)
}

function detailOf({ rule, message, found = [], configured }: Check): string {
  const detail = [message, rule].filter(Boolean).join(': ')
  return configured ? `${detail} (token: ${found.join(', ') || 'none'}; configured: ${configured.join(', ')})` : detail
}

function linesOf({ user, uid, groups = [], extra = {}, scope }: Explained): (readonly [string, string])[] {
  if (user === undefined) return []
  const extras = Object.entries(extra).map(([key, values]) => `${key}=${values.join(',')}`)
  return [
    ['User', user],
    ...(uid === undefined ? [] : [['UID', uid] as const]),
    ['Groups', groups.join(', ')],
    ...(extras.length ? [['Extra', extras.join(', ')] as const] : []),
    ['Scope', scope ? JSON.stringify(scope) : 'none'],
  ]
}
