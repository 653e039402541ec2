// The problems that `platform config check` reports about an auth.yaml.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configCheck } from '../../src/cmd/config-check.ts'
import { UsageError } from '../../src/host/command.ts'

export const configHeader = 'apiVersion: config.platform.sh/v1\nkind: AuthConfig\n'

type Surroundings = {
  /** Files beside auth.yaml. */
  readonly files?: { readonly [name: string]: string }
  readonly env?: { readonly [name: string]: string }
}

/** As `line:column: message`, without the name of the file. */
export async function problemsOf(
  text: string,
  { files = {}, env = {} }: Surroundings = {},
): Promise<readonly string[]> {
  const directory = mkdtempSync(join(tmpdir(), 'platform-auth-'))
  const file = join(directory, 'auth.yaml')
  for (const [name, content] of Object.entries({ ...files, 'auth.yaml': text }))
    writeFileSync(join(directory, name), content)
  const { log } = console
  console.log = () => {}
  try {
    await configCheck(['--auth-config', file], env)
    return []
  } catch (error) {
    assert.ok(error instanceof UsageError, String(error))
    return error.problems.map(problem => problem.replaceAll(`${directory}/`, '').replace(/^auth\.yaml:/, ''))
  } finally {
    console.log = log
    rmSync(directory, { recursive: true })
  }
}
