// Runs an exec plugin for credentials, and caches them until they expire.

import { spawn } from 'node:child_process'
import { isObject } from '../api/object.ts'
import type { Access, ExecPlugin } from './cluster-config.ts'

export type Provided = {
  readonly token?: string
  readonly certificate?: string
  readonly key?: string
  /** Milliseconds; absent: until the server rejects them. */
  readonly expires?: number
}

export type RunOptions = {
  readonly env: { readonly [name: string]: string | undefined }
  readonly access: Access
  readonly milliseconds?: number
}

const maxBytes = 1024 * 1024

/** Rejects with a message, which never contains standard output of the plugin. */
export async function runExecPlugin(
  plugin: ExecPlugin,
  { env, access, milliseconds = 60_000 }: RunOptions,
): Promise<Provided> {
  const info = {
    apiVersion: plugin.apiVersion,
    kind: 'ExecCredential',
    spec: {
      interactive: false,
      ...(plugin.provideClusterInfo
        ? { cluster: { server: access.server, 'insecure-skip-tls-verify': access.insecure } }
        : {}),
    },
  }
  const printed = await run(plugin, { ...env, ...plugin.env, KUBERNETES_EXEC_INFO: JSON.stringify(info) }, milliseconds)
  return providedOf(plugin, printed)
}

function run(plugin: ExecPlugin, env: NodeJS.ProcessEnv, milliseconds: number): Promise<string> {
  const { command, args, installHint } = plugin
  return new Promise((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`the exec plugin ${command} ${why}`))
    const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      fail(`did not finish within ${milliseconds / 1000} s`)
    }, milliseconds)
    let out = ''
    let err = ''
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk
      if (out.length > maxBytes) child.kill('SIGKILL')
    })
    child.stderr.on('data', (chunk: Buffer) => {
      err = (err + chunk).slice(-500)
    })
    child.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer)
      fail(
        error.code === 'ENOENT'
          ? `is not installed${installHint ? `: ${installHint}` : ''}`
          : `cannot start: ${error.message}`,
      )
    })
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      if (code === 0) resolve(out)
      else fail(`exited with ${signal ?? code}${err.trim() ? `: ${err.trim()}` : ''}`)
    })
  })
}

function providedOf({ command, apiVersion }: ExecPlugin, printed: string): Provided {
  const wrong = (what: string) => new Error(`the exec plugin ${command} ${what}`)
  let value: unknown
  try {
    value = JSON.parse(printed)
  } catch {
    throw wrong('did not print valid JSON')
  }
  if (!isObject(value) || value.kind !== 'ExecCredential' || !isObject(value.status))
    throw wrong('did not print an ExecCredential with a status')
  if (value.apiVersion !== apiVersion) throw wrong(`printed an ExecCredential whose apiVersion is not ${apiVersion}`)
  const { token, clientCertificateData: certificate, clientKeyData: key, expirationTimestamp } = value.status
  const expires = typeof expirationTimestamp === 'string' ? Date.parse(expirationTimestamp) : Number.NaN
  if (typeof token !== 'string' && !(typeof certificate === 'string' && typeof key === 'string'))
    throw wrong('printed neither a token nor a client certificate with its key')
  return {
    ...(typeof token === 'string' ? { token } : {}),
    ...(typeof certificate === 'string' && typeof key === 'string' ? { certificate, key } : {}),
    ...(Number.isNaN(expires) ? {} : { expires }),
  }
}
