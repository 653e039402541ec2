// Paths of the command line's files, by the XDG base directory specification.

import { UsageError } from '../host/command.ts'

type Env = { readonly [name: string]: string | undefined }

function directory(env: Env, variable: string, fallback: string): string {
  const given = env[variable]
  // The specification requires that relative paths are ignored.
  if (given?.startsWith('/')) return `${given}/platform`
  if (!env['HOME']) throw new UsageError([`cannot find a directory for files: set HOME or ${variable}`])
  return `${env['HOME']}/${fallback}/platform`
}

export const contextsFile = (env: Env) => `${directory(env, 'XDG_CONFIG_HOME', '.config')}/contexts.json`
export const keyFile = (env: Env, context: string) =>
  `${directory(env, 'XDG_DATA_HOME', '.local/share')}/keys/${encodeURIComponent(context)}`
/** Locked while a sign-in to the context waits for the user. */
export const loginFile = (env: Env, context: string) =>
  `${directory(env, 'XDG_CONFIG_HOME', '.config')}/login-${encodeURIComponent(context)}`
/** One directory per key and server, so that logout can delete all copies together. */
export const copiesDirectory = (env: Env, owner: string) => `${allCopies(env)}/${owner}`
export const allCopies = (env: Env) => `${directory(env, 'XDG_STATE_HOME', '.local/state')}/copies`
/** A file that exists only while one command runs. */
export const runtimeFile = (env: Env, name: string) =>
  env['XDG_RUNTIME_DIR']?.startsWith('/')
    ? `${env['XDG_RUNTIME_DIR']}/platform/${name}`
    : `${directory(env, 'XDG_STATE_HOME', '.local/state')}/${name}`
