// `platform run`: runs a program with secrets in its environment, without writing them to disk.

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
import { type FileFlags, parseFiles, writeFiles } from './secret-files.ts'
import { allValues } from './secret-values.ts'

const flags = {
  ...secretFlags,
  secret: {
    type: 'list',
    short: 's',
    value: 'NAME[.KEY[=ENV]]',
    what: 'A secret, one of its keys, or a key under another variable name.',
  },
  file: {
    type: 'list',
    value: 'NAME[.KEY]=PATH',
    what: 'Write a key to a new file (mode 0600), or a whole secret to a new directory (0700) with a file for each key. KEY of --secret also works and leaves the environment. Removed afterwards.',
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
  what: 'Run a program with secrets in its environment. Forwards signals to it and returns its exit code.',
  examples: [
    { what: 'Every key of a secret under its own name', command: 'platform run --secret app -- npm start' },
    { what: 'One key under another name', command: 'platform run --secret db.password=PGPASSWORD -- psql' },
    {
      what: 'A key as a file, with masked output',
      command: 'platform run --file tls.key=tls.key --mask -- ./serve',
    },
    { what: 'A whole secret as a directory of files', command: 'platform run --file tls=./certs -- ./serve' },
    {
      what: 'Restart when a value changes',
      command: 'platform run --project shop --secret app --watch -- ./serve',
    },
  ],
  flags,
  positionals: [{ name: '-- COMMAND', what: 'the program and its arguments, after --', many: true }],
  run: async ({ flags: given, words }, io) => {
    if (!words[0]) throw new UsageError(['the program is missing: platform run --secret NAME -- COMMAND'])
    if (!given.secret.length && !given.file.length)
      throw new UsageError(['--secret NAME or --file NAME=PATH is missing: the secrets for the program'])
    const files = parseFiles(given.file)
    const problems = [
      ...given.secret.flatMap(one => slashProblem('--secret', one.split('=')[0] ?? '', given.project)),
      ...[...files.keys()].flatMap(name => slashProblem('--file', name, given.project)),
    ]
    if (problems.length) throw new UsageError(problems)
    const first = await valuesOrCopy(io, given, files)
    for (const note of first.notes) io.err(`platform: warning: ${note}\n`)
    const start = (values: Values) => startWith(io, { values, files, words, isMasked: given.mask })
    if (!given.watch) return (await start(first)).ended
    return runWatched(io, given, { first, start, read: () => liveValues(io, given, files) })
  },
})

/** PROJECT/NAME is the form of `create accesskey --secret`. The server would report a path that it does not serve. */
function slashProblem(flag: string, name: string, project: string | undefined): string[] {
  const [first = '', ...rest] = name.split('/')
  if (!rest.length) return []
  const named = /^[a-z0-9-]{1,61}$/.test(first) ? first : 'PROJECT'
  const hint = project === undefined ? `; for a secret of a project use --project ${named}` : ''
  return [`${flag}: ${quoted(name)} is not the name of a secret${hint}`]
}

/** Falls back to the cached copy if the service is unreachable. A copy has no sources. */
async function valuesOrCopy(io: Io, given: RunFlags, files: FileFlags): Promise<Values> {
  try {
    return await liveValues(io, given, files)
  } catch (error) {
    const isUnreachable = error instanceof ApiError && error.code >= 500 && !isUntrusted(error)
    if (!isUnreachable || given['no-fallback']) throw error
    const copy = await readCopy(io, await copyOf(io, given, files))
    if (!copy) throw error
    const age = span((io.now() - copy.time) / 1000)
    io.err(`platform: warning: ${error.message}; using cached values from ${age} ago\n`)
    return { values: copy.values, files: copy.files, sources: [], notes: [] }
  }
}

async function copyOf(io: Io, given: RunFlags, files: FileFlags): Promise<CopyId> {
  const { server, key, namespace } = await sessionTarget(io, given)
  const secrets = [...given.secret, ...[...files.keys()].map(name => `file ${name}`)]
  return { server, key, secrets, scope: `${given.project ?? ''}/${namespace}` }
}

/** Reads from the service only. Deletes the copy if the service denies access. */
async function liveValues(io: Io, given: RunFlags, files: FileFlags): Promise<Values> {
  const session = await openSession(io, given)
  try {
    const read = await readValues(session, { secrets: given.secret, files: [...files.keys()] }, given)
    if (!given['no-fallback']) await writeCopy(io, await copyOf(io, given, files), read)
    return read
  } catch (error) {
    if (error instanceof ApiError && [401, 403, 404].includes(error.code))
      await dropCopy(io, await copyOf(io, given, files))
    throw error
  } finally {
    session.close()
  }
}

type ProgramOptions = {
  readonly values: Values
  readonly files: FileFlags
  readonly words: readonly string[]
  readonly isMasked: boolean
}

async function startWith(io: Io, { values: read, files, words, isMasked }: ProgramOptions) {
  const { values } = read
  const inEnv = new Map([...values].filter(([key]) => !files.has(key)))
  const unseen = [...inEnv.keys()].filter(key => !/^[A-Za-z_]\w*$/.test(key))
  if (unseen.length)
    io.err(
      `platform: warning: not valid variable names, so shells cannot read them: ${unseen.join(', ')}; map them with --secret NAME.KEY=ENV\n`,
    )
  const variables = variablesOf(inEnv)
  // The program gets only the requested secrets, not the key that can read more.
  const { PLATFORM_ACCESS_KEY: _, PLATFORM_PASSPHRASE: __, ...env } = io.env
  const shown = allValues(read)
  const mask = () => maskOf([...shown.values()])
  const through = isMasked ? { through: { out: mask(), err: mask() } } : {}
  const short = isMasked ? unmasked(shown) : []
  if (short.length)
    io.err(`platform: warning: --mask does not mask values shorter than ${shortest} bytes: ${short.join(', ')}\n`)
  const cleanUp = await writeFiles(io, read, files)
  try {
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
