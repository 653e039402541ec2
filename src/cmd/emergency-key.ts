// `platform admin emergency-key`: asks the running server for a short-lived administrator key, on its host.

import { existsSync, lstatSync, type Stats } from 'node:fs'
import { userInfo } from 'node:os'
import { adminSocketIn, isTooLong } from '../apiserver/admin-socket.ts'
import { type EmergencyKey, emergencyTtl, isPrintable } from '../apiserver/emergency-key.ts'
import { defineCommand, UsageError } from '../host/command.ts'
import { readDuration } from '../host/duration.ts'
import { loadUndici } from '../transport/undici.ts'
import { dataFlags, resolveData } from './data-flags.ts'

const within = 15_000
const maxAnswer = 65_536

export const emergencyKey = defineCommand({
  words: ['admin', 'emergency-key'],
  what: 'Create a short-lived administrator key on the host of the running server, for when nobody can sign in.',
  examples: [{ command: 'platform admin emergency-key --reason "identity provider is down" --data data' }],
  flags: {
    reason: { type: 'text', value: 'TEXT', what: 'Reason for the audit log, at most 200 characters.', required: true },
    ttl: { type: 'text', value: 'DURATION', what: 'Lifetime of the key, from 1m to 1h.', default: '15m' },
    config: dataFlags.config,
    data: dataFlags.data,
  },
  run: async ({ flags }, io) => {
    const { reason } = flags
    if (!isPrintable(reason)) throw new UsageError(['--reason: must have 1 to 200 printable characters'])
    const ttlSeconds = readDuration('--ttl', flags.ttl)
    if (ttlSeconds < emergencyTtl.minimum || ttlSeconds > emergencyTtl.maximum)
      throw new UsageError(['--ttl: must be from 1m to 1h'])
    const { directory } = await resolveData(flags, io.env)
    if (!existsSync(directory))
      throw new UsageError([`${directory} does not exist: set --data to the directory of a running server`])
    const path = adminSocketIn(directory)
    if (isTooLong(path))
      throw new Error(`the path ${path} is too long for a socket: move the data directory, or use platform admin reset`)
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (!stats) throw notRunning(directory)
    const problem = socketProblem(stats, process.geteuid?.())
    if (problem !== undefined) throw new Error(`${path} ${problem}`)
    const sudo = io.env['SUDO_USER']
    const hostUser = `${userInfo().username}${sudo ? ` (sudo by ${sudo})` : ''}`
    const { key, name, expires } = await ask(path, directory, { reason, hostUser, ttlSeconds })
    io.out(`${key}\n`)
    io.err(
      `platform: the key ${name} of user admin expires at ${expires}; delete it when you no longer need it: platform delete ownedaccesskey ${name}\n`,
    )
    return 0
  },
})

/** Why the command does not trust the socket; undefined: it does. Another user could read the reason, or answer instead of the server. */
export function socketProblem(stats: Pick<Stats, 'uid' | 'mode' | 'isSocket'>, uid: number | undefined) {
  if (!stats.isSocket()) return 'is not a socket: remove it and restart the server'
  if (stats.uid !== uid) return `belongs to the user with id ${stats.uid}: run the command as this user`
  const mode = (stats.mode & 0o777).toString(8).padStart(4, '0')
  return mode === '0600' ? undefined : `has mode ${mode} instead of 0600: restart the server`
}

const notRunning = (directory: string) =>
  new Error(
    `no server is running on ${directory}: start it with platform serve, or create a key without it with platform admin reset`,
  )

async function ask(path: string, directory: string, body: object): Promise<EmergencyKey> {
  const { Client } = loadUndici()
  const limits = { headersTimeout: within, bodyTimeout: within, maxResponseSize: maxAnswer }
  const client = new Client('http://localhost', { socketPath: path, ...limits })
  try {
    const { status, text } = await new Promise<{ status: number; text: string }>((resolve, reject) => {
      let status = 0
      const chunks: Buffer[] = []
      const headers = { 'content-type': 'application/json' }
      client.dispatch(
        { path: '/emergency-key', method: 'POST', headers, body: JSON.stringify(body) },
        {
          onRequestStart() {},
          onResponseStart: (_, code) => {
            status = code
          },
          onResponseData: (_, chunk) => void chunks.push(chunk),
          onResponseEnd: () => resolve({ status, text: Buffer.concat(chunks).toString('utf8') }),
          onResponseError: (_, error) => reject(error),
        },
      )
    })
    const { key, name, expires, message } = fieldsOf(text)
    if (status === 201 && key && name && expires) return { key, name, expires }
    throw new Error(message ?? `unexpected response of the server (status ${status})`)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ECONNREFUSED' || code === 'ENOENT') throw notRunning(directory)
    throw code === undefined ? error : new Error(`cannot ask the server over ${path}: ${message}`)
  } finally {
    await client.destroy()
  }
}

function fieldsOf(text: string): { readonly [name in 'key' | 'name' | 'expires' | 'message']?: string } {
  try {
    const fields = Object.entries((JSON.parse(text) ?? {}) as object)
    return Object.fromEntries(fields.filter(([, value]) => typeof value === 'string'))
  } catch {
    return {}
  }
}
