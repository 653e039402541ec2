// `platform run`: a program with secrets in its environment, and in no file, argument or shell.

import { resolve } from 'node:path'
import { ApiError } from '../../api/errors.ts'
import { defineCommand, type Given, type Io, UsageError } from '../../host/command.ts'
import { quoted } from '../../host/sanitize.ts'
import { isUntrusted } from '../login/trust.ts'
import { span } from '../print.ts'
import { openSession, whereTo } from '../session.ts'
import { readValues, type Values, variablesOf } from './environment.ts'
import { maskOf, shortest, unmasked } from './mask.ts'
import { type CopyOf, dropCopy, keepCopy, readCopy } from './offline-cache.ts'
import { followed } from './run-watch.ts'
import { secretFlags } from './secret.ts'

const flags = {
  ...secretFlags,
  secret: {
    type: 'list',
    short: 's',
    value: 'NAME[.KEY[=ENV]]',
    what: 'A secret, one of its keys, or that key under another name.',
    required: true,
  },
  file: {
    type: 'list',
    value: 'KEY=PATH',
    what: 'Give this value as a new file for its owner alone, removed afterwards.',
  },
  mask: { type: 'switch', what: 'Replace the values in what the program prints.' },
  watch: { type: 'switch', what: 'Start the program anew when a value changes.' },
  'no-fallback': { type: 'switch', what: 'Neither keep nor use an encrypted copy for when the service is away.' },
} as const
type RunFlags = Given<typeof flags>['flags']

export const run = defineCommand({
  words: ['run'],
  what: 'Run a program with secrets in its environment; its exit code and signals are passed through.',
  examples: [
    { what: 'Every key of a secret under its own name', command: 'platform run --secret app -- npm start' },
    { what: 'One key under another name', command: 'platform run --secret db.password=PGPASSWORD -- psql' },
    {
      what: 'A key as a file, and nothing of it in the output',
      command: 'platform run --secret tls --file key=tls.key --mask -- ./serve',
    },
    {
      what: 'Started anew when a value changes',
      command: 'platform run --project shop --secret app --watch -- ./serve',
    },
  ],
  flags,
  positionals: [{ name: '-- COMMAND', what: 'the program and its arguments, behind --', many: true }],
  run: async ({ flags: asked, words }, io) => {
    if (!words[0]) throw new UsageError(['there is no program to run: platform run --secret NAME -- COMMAND'])
    const files = filesOf(asked.file)
    const first = await valuesNow(io, asked)
    for (const note of first.notes) io.err(`platform: warning: ${note}\n`)
    const start = (values: Values['values']) => startWith(io, { values, files, words, isMasked: asked.mask })
    if (!asked.watch) return (await start(first.values)).ended
    return followed(io, asked, { first, start, read: () => liveValues(io, asked) })
  },
})

function filesOf(pairs: readonly string[]): ReadonlyMap<string, string> {
  const files = new Map<string, string>()
  const [wrong, twice]: [string[], string[]] = [[], []]
  for (const pair of pairs) {
    const [, key = '', path = ''] = /^([^=]+)=(.+)$/s.exec(pair) ?? []
    if (!path) wrong.push(`--file: ${quoted(pair)} must be KEY=PATH, such as key=tls.key`)
    else if (files.has(key)) twice.push(`--file: the key ${quoted(key)} is given twice`)
    else files.set(key, resolve(path))
  }
  if (wrong.length + twice.length) throw new UsageError([...wrong, ...twice])
  return files
}

/** From the service; where it is away, the last known ones, which name no sources. */
async function valuesNow(io: Io, asked: RunFlags): Promise<Values> {
  try {
    return await liveValues(io, asked)
  } catch (error) {
    const isAway = error instanceof ApiError && error.code >= 500 && !isUntrusted(error)
    if (!isAway || asked['no-fallback']) throw error
    const copy = await readCopy(io, await copyOf(io, asked))
    if (!copy) throw error
    const age = span((io.now() - copy.time) / 1000)
    io.err(`platform: warning: ${error.message}; the program gets the values of ${age} ago\n`)
    return { values: copy.values, sources: [], notes: [] }
  }
}

async function copyOf(io: Io, asked: RunFlags): Promise<CopyOf> {
  const { server, key, namespace } = await whereTo(io, asked)
  return { server, key, asked: asked.secret, place: `${asked.project ?? ''}/${namespace}` }
}

/** From the service alone; what may not be read any more leaves no copy. */
async function liveValues(io: Io, asked: RunFlags): Promise<Values> {
  const session = await openSession(io, asked)
  try {
    const read = await readValues(session, asked.secret, asked)
    if (!asked['no-fallback']) await keepCopy(io, await copyOf(io, asked), read.values)
    return read
  } catch (error) {
    if (error instanceof ApiError && [401, 403, 404].includes(error.code)) await dropCopy(io, await copyOf(io, asked))
    throw error
  } finally {
    session.close()
  }
}

type Wanted = {
  readonly values: Values['values']
  readonly files: ReadonlyMap<string, string>
  readonly words: readonly string[]
  readonly isMasked: boolean
}

async function startWith(io: Io, { values, files, words, isMasked }: Wanted) {
  const missing = [...files.keys()].filter(key => !values.has(key))
  if (missing.length)
    throw new UsageError(
      missing.map(key => `--file ${key}: no secret has that key; there are: ${[...values.keys()].join(', ')}`),
    )
  const inEnv = new Map([...values].filter(([key]) => !files.has(key)))
  const unseen = [...inEnv.keys()].filter(key => !/^[A-Za-z_]\w*$/.test(key))
  if (unseen.length)
    io.err(
      `platform: warning: no names of variables, so that shells do not see them: ${unseen.join(', ')}; --secret NAME.KEY=ENV gives one a name\n`,
    )
  const variables = variablesOf(inEnv)
  // Our own key is not the child's: it asked for these secrets, not for all that we may read.
  const { PLATFORM_ACCESS_KEY: _, PLATFORM_PASSPHRASE: __, ...env } = io.env
  const through = isMasked ? { through: { out: maskOf(values.values()), err: maskOf(values.values()) } } : {}
  const short = isMasked ? unmasked(values) : []
  if (short.length)
    io.err(`platform: warning: --mask leaves what is shorter than ${shortest} bytes: ${short.join(', ')}\n`)
  const made: string[] = []
  const away = async () => {
    for (const path of made) await io.files.remove(path)
  }
  try {
    for (const [key, path] of files) {
      // What is there is somebody's: it would be gone afterwards.
      if (!(await io.files.make(path, values.get(key) ?? '')))
        throw new UsageError([`--file ${key}: ${path} is there already; name a file that is not`])
      made.push(path)
    }
    const started = io.start(words, { env: { ...env, ...variables }, ...through })
    return { ended: thenAway(started.ended, away), kill: started.kill }
  } catch (error) {
    await away()
    throw error
  }
}

async function thenAway(ended: Promise<number>, away: () => Promise<void>): Promise<number> {
  try {
    return await ended
  } finally {
    await away()
  }
}
