// `platform support-bundle`: collects what a bug report needs into an archive, without secrets and, by default, without names.

import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { arch, cpus, freemem, loadavg, release, totalmem, type } from 'node:os'
import { gzipSync } from 'node:zlib'
import { contextFlag } from '../cli/flags.ts'
import { openSession } from '../cli/session.ts'
import { json, type Part, partsOfServer } from '../cli/support/from-server.ts'
import { logTail } from '../cli/support/log-tail.ts'
import { openRedaction, type Redaction } from '../cli/support/redact.ts'
import { tarOf } from '../cli/support/tar.ts'
import { defineCommand, type Io, UsageError } from '../host/command.ts'
import { unreadable, unwritable } from '../host/fs-errors.ts'
import { dataFlags, resolveData } from './data-flags.ts'
import { version } from './version.ts'

const logBytes = 4 * 1024 * 1024

export const supportBundle = defineCommand({
  words: ['support-bundle'],
  what: 'Collect facts for a bug report into an archive, without secrets and without names of objects.',
  examples: [
    { what: 'From the server you are signed in to', command: 'platform support-bundle --output support.tar.gz' },
    {
      what: 'On the machine of a server that does not start, with the end of its log',
      command: 'platform support-bundle --data data --log platform.log --output support.tar.gz',
    },
  ],
  flags: {
    ...contextFlag,
    config: dataFlags.config,
    data: { type: 'text', value: 'DIR', what: 'Read this data directory instead of a server.' },
    log: { type: 'text', value: 'FILE', what: 'Add the end of this log, without names and free text.' },
    names: { type: 'switch', what: 'Keep the names of objects, users and keys. Default: hashes of them.' },
    output: {
      type: 'text',
      value: 'FILE',
      what: 'The archive to write, or - for standard output. Default: platform-support-TIME.tar.gz.',
    },
  },
  run: async ({ flags }, io) => {
    const file = flags.output ?? `platform-support-${new Date(io.now()).toISOString().replace(/[-:]|\..*/g, '')}.tar.gz`
    const isPiped = file === '-'
    if (isPiped && io.isTerminal) throw new UsageError(['an archive is binary: write it to a file or a pipe'])
    if (!isPiped && existsSync(file))
      throw new UsageError([`${file} already exists: choose another file with --output`])
    const redaction = openRedaction(flags.names, io.random(16))
    const log = flags.log === undefined ? [] : [await logPart(flags.log, redaction)]
    const collected =
      flags.data === undefined ? await fromServer(flags.context, redaction, io) : await local(flags, io, redaction)
    const parts = [machinePart(), ...collected, ...log]
    const contents = parts.map(({ name, what }) => `${name.padEnd(28)}${what}`).join('\n')
    io.err(`platform: ${isPiped ? 'the archive' : file} will contain:\n${contents}\n`)
    const about = `Made by platform support-bundle ${version}. Names are ${flags.names ? 'kept' : 'hashed'}.\n\n${contents}\n`
    const all = [{ name: 'README.txt', what: '', text: about }, ...parts]
    const files = all.map(({ name, text }) => ({ name: `platform-support/${name}`, bytes: Buffer.from(text) }))
    const archive = gzipSync(tarOf(files, io.now()))
    if (!isPiped)
      await writeFile(file, archive, { flag: 'wx', mode: 0o600 }).catch(error => {
        throw unwritable(file, error)
      })
    io.err('platform: check the files before you share the archive\n')
    io.out(isPiped ? archive : `${file}\n`)
    return 0
  },
})

async function fromServer(context: string | undefined, redaction: Redaction, io: Io): Promise<Part[]> {
  const session = await openSession(io, { context })
  try {
    return await partsOfServer({ session, redaction, now: io.now() })
  } finally {
    session.close()
  }
}

type LocalFlags = { readonly config?: string | undefined; readonly data?: string | undefined }

async function local({ config, data }: LocalFlags, io: Io, redaction: Redaction): Promise<Part[]> {
  const { settings } = await resolveData({ ...(config ? { config } : {}), ...(data ? { data } : {}) }, io.env)
  // Loaded only if it is used, because it has many modules.
  const { partsOfDirectory } = await import('./support-local.ts')
  return partsOfDirectory(settings, redaction)
}

async function logPart(file: string, redaction: Redaction): Promise<Part> {
  const { tailOf } = await import('./support-local.ts')
  try {
    return {
      name: 'log.jsonl',
      what: 'end of the log, known fields only',
      text: logTail(tailOf(file, logBytes), redaction),
    }
  } catch (error) {
    throw unreadable(file, error)
  }
}

const machinePart = (): Part =>
  json('machine.json', 'versions of platform, Node and the system; processors and memory', {
    platform: version,
    node: process.version,
    system: type(),
    release: release(),
    arch: arch(),
    processors: cpus().length,
    load: loadavg(),
    memory: { total: totalmem(), free: freemem() },
  })
