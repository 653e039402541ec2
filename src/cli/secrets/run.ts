// `platform run`: runs a program with secrets in its environment, without writing them to disk.

import { resolve } from 'node:path'
import { ApiError } from '../../api/errors.ts'
import { defineCommand, type Given, type Io, UsageError } from '../../host/command.ts'
import { quoted } from '../../host/sanitize.ts'
import { isUntrusted } from '../login/trust.ts'
import { span } from '../print.ts'
import { openSession, sessionTarget } from '../session.ts'
import { readValues, type Values, variablesOf } from './environment.ts'
import { maskOf, shortest, unmasked } from './mask.ts'
import { type CopyId, dropCopy, readCopy, writeCopy } from './offline-cache.ts'
import { runWatched } from './run-watch.ts'
import { secretFlags } from './secret.ts'

const flags = {
  ...secretFlags,
  secret: {
    type: 'list',
    short: 's',
    value: 'NAME[.KEY[=ENV]]',
    what: 'A secret, one of its keys, or a key under another variable name.',
    required: true,
  },
  file: {
    type: 'list',
    value: 'KEY=PATH',
    what: 'Write this value to a new file with mode 0600 instead, removed afterwards.',
  },
  mask: { type: 'switch', what: 'Mask the values in the output of the program.' },
  watch: { type: 'switch', what: 'Restart the program when a value changes.' },
  'no-fallback': {
    type: 'switch',
    what: 'Do not keep an encrypted copy of the values for when the server is unreachable.',
  },
} as const
type RunFlags = Given<typeof flags>['flags']

export const run = defineCommand({
  words: ['run'],
  what: 'Run a program with secrets in its environment. Passes on its exit code and signals.',
  examples: [
    { what: 'Every key of a secret under its own name', command: 'platform run --secret app -- npm start' },
    { what: 'One key under another name', command: 'platform run --secret db.password=PGPASSWORD -- psql' },
    {
      what: 'A key as a file, with masked output',
      command: 'platform run --secret tls --file key=tls.key --mask -- ./serve',
    },
    {
      what: 'Restart when a value changes',
      command: 'platform run --project shop --secret app --watch -- ./serve',
    },
  ],
  flags,
  positionals: [{ name: '-- COMMAND', what: 'the program and its arguments, after --', many: true }],
  run: async ({ flags: given, words }, io) => {
    if (!words[0]) throw new UsageError(['the program is missing: platform run --secret NAME -- COMMAND'])
    const files = filesOf(given.file)
    const first = await valuesOrCopy(io, given)
    for (const note of first.notes) io.err(`platform: warning: ${note}\n`)
    const start = (values: Values['values']) => startWith(io, { values, files, words, isMasked: given.mask })
    if (!given.watch) return (await start(first.values)).ended
    return runWatched(io, given, { first, start, read: () => liveValues(io, given) })
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

/** Falls back to the cached copy if the service is unreachable. A copy has no sources. */
async function valuesOrCopy(io: Io, given: RunFlags): Promise<Values> {
  try {
    return await liveValues(io, given)
  } catch (error) {
    const isUnreachable = error instanceof ApiError && error.code >= 500 && !isUntrusted(error)
    if (!isUnreachable || given['no-fallback']) throw error
    const copy = await readCopy(io, await copyOf(io, given))
    if (!copy) throw error
    const age = span((io.now() - copy.time) / 1000)
    io.err(`platform: warning: ${error.message}; using cached values from ${age} ago\n`)
    return { values: copy.values, sources: [], notes: [] }
  }
}

async function copyOf(io: Io, given: RunFlags): Promise<CopyId> {
  const { server, key, namespace } = await sessionTarget(io, given)
  return { server, key, secrets: given.secret, scope: `${given.project ?? ''}/${namespace}` }
}

/** Reads from the service only. Deletes the copy if the service denies access. */
async function liveValues(io: Io, given: RunFlags): Promise<Values> {
  const session = await openSession(io, given)
  try {
    const read = await readValues(session, given.secret, given)
    if (!given['no-fallback']) await writeCopy(io, await copyOf(io, given), read.values)
    return read
  } catch (error) {
    if (error instanceof ApiError && [401, 403, 404].includes(error.code)) await dropCopy(io, await copyOf(io, given))
    throw error
  } finally {
    session.close()
  }
}

type ProgramOptions = {
  readonly values: Values['values']
  readonly files: ReadonlyMap<string, string>
  readonly words: readonly string[]
  readonly isMasked: boolean
}

async function startWith(io: Io, { values, files, words, isMasked }: ProgramOptions) {
  const missing = [...files.keys()].filter(key => !values.has(key))
  if (missing.length)
    throw new UsageError(
      missing.map(key => `--file ${key}: no secret has this key; known keys: ${[...values.keys()].join(', ')}`),
    )
  const inEnv = new Map([...values].filter(([key]) => !files.has(key)))
  const unseen = [...inEnv.keys()].filter(key => !/^[A-Za-z_]\w*$/.test(key))
  if (unseen.length)
    io.err(
      `platform: warning: not valid variable names, so shells cannot read them: ${unseen.join(', ')}; map them with --secret NAME.KEY=ENV\n`,
    )
  const variables = variablesOf(inEnv)
  // The program gets only the requested secrets, not the key that can read more.
  const { PLATFORM_ACCESS_KEY: _, PLATFORM_PASSPHRASE: __, ...env } = io.env
  const through = isMasked ? { through: { out: maskOf(values.values()), err: maskOf(values.values()) } } : {}
  const short = isMasked ? unmasked(values) : []
  if (short.length)
    io.err(`platform: warning: --mask does not mask values shorter than ${shortest} bytes: ${short.join(', ')}\n`)
  const createdFiles: string[] = []
  const cleanUp = async () => {
    for (const path of createdFiles) await io.files.remove(path)
  }
  try {
    for (const [key, path] of files) {
      // Never overwrite an existing file: it would be deleted afterwards.
      if (!(await io.files.make(path, values.get(key) ?? '')))
        throw new UsageError([`--file ${key}: ${path} already exists; choose another path`])
      createdFiles.push(path)
    }
    const started = io.start(words, { env: { ...env, ...variables }, ...through })
    return { ended: thenCleanUp(started.ended, cleanUp), kill: started.kill }
  } catch (error) {
    await cleanUp()
    throw error
  }
}

async function thenCleanUp(ended: Promise<number>, cleanUp: () => Promise<void>): Promise<number> {
  try {
    return await ended
  } finally {
    await cleanUp()
  }
}
