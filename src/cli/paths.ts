// Where the command line keeps its files, by the XDG base directory specification. contexts.ts and the commands ask.

import { UsageError } from '../host/command.ts'

type Env = { readonly [name: string]: string | undefined }

function directory(env: Env, variable: string, usual: string): string {
  const given = env[variable]
  // A relative path is to be ignored, says that specification.
  if (given?.startsWith('/')) return `${given}/platform`
  if (!env['HOME']) throw new UsageError([`neither HOME nor ${variable} is set: there is no place for files`])
  return `${env['HOME']}/${usual}/platform`
}

export const contextsFile = (env: Env) => `${directory(env, 'XDG_CONFIG_HOME', '.config')}/contexts.json`
export const keyFile = (env: Env, context: string) =>
  `${directory(env, 'XDG_DATA_HOME', '.local/share')}/keys/${encodeURIComponent(context)}`
/** Of one key at one server, so that they can go together. */
export const copiesDirectory = (env: Env, owner: string) => `${allCopies(env)}/${owner}`
export const allCopies = (env: Env) => `${directory(env, 'XDG_STATE_HOME', '.local/state')}/copies`
/** For what lives as long as one command. */
export const passingFile = (env: Env, name: string) =>
  env['XDG_RUNTIME_DIR']?.startsWith('/')
    ? `${env['XDG_RUNTIME_DIR']}/platform/${name}`
    : `${directory(env, 'XDG_STATE_HOME', '.local/state')}/${name}`
