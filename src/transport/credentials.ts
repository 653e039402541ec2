// The current credentials for a cluster: header and client certificate from a token, a file, a password or an exec plugin.

import { readFileSync, statSync } from 'node:fs'
import type { Access, Material } from './cluster-config.ts'
import { type Provided, type RunOptions, runExecPlugin } from './exec-plugin.ts'

export type Identity = {
  readonly authorization?: string
  readonly ca?: string
  readonly certificate?: string
  readonly key?: string
}

export interface Credentials {
  /** Rejects with a message if a file or the plugin fails. */
  now(): Promise<Identity>
  /** Call after the server rejected the credentials: cached ones are not used again. */
  refuse(): void
  /** Whether `now` may return other credentials after a rejection. */
  readonly mayChange: boolean
}

type Options = { readonly env: RunOptions['env']; readonly now: () => number }

/** Milliseconds before the expiry at which the exec plugin runs again. */
const early = 10_000
const tokenFor = 60_000

export function openCredentials(access: Access, { env, now }: Options): Credentials {
  const read = fileReader()
  const provided = access.exec && pluginCredentials(access, { env, now })
  const token = access.tokenFile === undefined ? undefined : tokenOf(access.tokenFile, now)
  return {
    mayChange: Boolean(provided || token),
    refuse: () => {
      provided?.forget()
      token?.forget()
    },
    async now() {
      const plugin = await provided?.get()
      const bearer = token?.get() ?? access.token ?? plugin?.token
      const basic =
        access.username && access.password !== undefined ? `${access.username}:${access.password}` : undefined
      const authorization = bearer ? `Bearer ${bearer}` : basic && `Basic ${Buffer.from(basic).toString('base64')}`
      const [ca, certificate, key] = [access.ca, access.certificate, access.key].map(one => one && read(one))
      return {
        ...(authorization ? { authorization } : {}),
        ...(ca ? { ca } : {}),
        ...(certificate && key
          ? { certificate, key }
          : plugin?.certificate && plugin.key
            ? { certificate: plugin.certificate, key: plugin.key }
            : {}),
      }
    },
  }
}

/** Reloads files when they change, because mounted certificates are renewed while a program runs. */
function fileReader(): (material: Material) => string {
  const known = new Map<string, { readonly stamp: string; readonly text: string }>()
  return material => {
    if ('text' in material) return material.text
    const { file } = material
    const before = known.get(file)
    try {
      const { mtimeMs, size, ino } = statSync(file)
      const stamp = `${mtimeMs}/${size}/${ino}`
      if (before?.stamp === stamp) return before.text
      const text = readFileSync(file, 'utf8')
      known.set(file, { stamp, text })
      return text
    } catch (error) {
      if (before) return before.text
      throw new Error(`cannot read ${file}: ${(error as Error).message}`)
    }
  }
}

function tokenOf(file: string, now: () => number) {
  let kept: { readonly text: string; readonly until: number } | undefined
  return {
    get() {
      if (kept && now() < kept.until) return kept.text
      try {
        kept = { text: readFileSync(file, 'utf8').trim(), until: now() + tokenFor }
        return kept.text
      } catch (error) {
        if (kept) return kept.text
        throw new Error(`cannot read the token file ${file}: ${(error as Error).message}`)
      }
    },
    forget: () => {
      if (kept) kept = { ...kept, until: 0 }
    },
  }
}

/** Runs the plugin once at a time, for all concurrent callers. */
function pluginCredentials(access: Access, { env, now }: Options) {
  let kept: Provided | undefined
  let running: Promise<Provided> | undefined
  const isFresh = () => kept && (kept.expires === undefined || now() < kept.expires - early)
  return {
    async get(): Promise<Provided> {
      if (kept && isFresh()) return kept
      running ??= runExecPlugin(access.exec as NonNullable<Access['exec']>, { env, access })
        .then(provided => {
          kept = provided
          return provided
        })
        .finally(() => {
          running = undefined
        })
      return running
    },
    forget: () => {
      kept = undefined
    },
  }
}
