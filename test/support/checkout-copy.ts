// A copy of this checkout as a repository of its own, for tests that build: a build replaces `dist`, which other tests use.

import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { exec, type Output } from './exec.ts'

const root = join(import.meta.dirname, '../..')
const notCopied = ['.git', 'node_modules', 'dist', 'data', 'release']

export type Checkout = {
  readonly directory: string
  /** Runs a program in it, which must succeed. Builds are slow on a busy machine, so the limit is high. */
  run(file: string, ...args: string[]): Promise<string>
  exec(file: string, ...args: string[]): Promise<Output>
  remove(): void
}

/** Has one commit on `main`, with all files of this checkout, committed or not. */
export async function copyCheckout(): Promise<Checkout> {
  const directory = mkdtempSync(join(tmpdir(), 'platform-checkout-'))
  for (const name of readdirSync(root))
    if (!notCopied.includes(name)) cpSync(join(root, name), join(directory, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  const person = { GIT_AUTHOR_NAME: 'Test', GIT_AUTHOR_EMAIL: 'test@example.org', GIT_CONFIG_GLOBAL: '/dev/null' }
  const env = {
    ...process.env,
    ...npmSettings(),
    ...person,
    GIT_COMMITTER_NAME: person.GIT_AUTHOR_NAME,
    GIT_COMMITTER_EMAIL: person.GIT_AUTHOR_EMAIL,
  }
  const start = (file: string, ...args: string[]) => exec(file, args, { cwd: directory, env, timeout: 900_000 })
  const run = async (file: string, ...args: string[]) => {
    const { code, stdout, stderr } = await start(file, ...args)
    assert.equal(code, 0, `${file} ${args.join(' ')}:\n${stdout}${stderr}`)
    return stdout
  }
  await run('git', 'init', '--quiet', '--initial-branch', 'main')
  await run('git', 'add', '--all')
  await run('git', 'commit', '--quiet', '--message', 'Sources')
  return { directory, run, exec: start, remove: () => rmSync(directory, { recursive: true, force: true }) }
}

/** The registry and the cache of this machine, for npm with another home. */
export function npmSettings(): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) =>
    /^npm_config_|_proxy$|^NODE_EXTRA_CA_CERTS$/i.test(name),
  )
  return {
    npm_config_cache: join(homedir(), '.npm'),
    npm_config_userconfig: join(homedir(), '.npmrc'),
    ...Object.fromEntries(inherited),
    npm_config_prefer_offline: 'true',
    npm_config_update_notifier: 'false',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
  }
}
