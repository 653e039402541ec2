// The sources of a build: version, commit and time. The time is that of the commit, so that builds are reproducible.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './run.ts'

export type Source = {
  readonly root: string
  readonly name: string
  readonly version: string
  readonly description: string
  readonly license: string
  /** Absent in a source archive. */
  readonly commit: string | undefined
  /** Seconds since 1970: SOURCE_DATE_EPOCH, or the time of the commit. */
  readonly epoch: number
}

/** The time that npm writes into packages. */
const timeOfNpm = Date.parse('1985-10-26T08:15:00Z') / 1000

export async function readSource(root: string, env: NodeJS.ProcessEnv): Promise<Source> {
  const { name, version, description, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const [commit, time] = await run('git', ['log', '-1', '--format=%H %ct'], { cwd: root }).then(
    text => text.trim().split(' '),
    () => [],
  )
  const epoch = Number(env['SOURCE_DATE_EPOCH'] ?? time ?? timeOfNpm)
  if (!Number.isSafeInteger(epoch) || epoch < 0)
    throw new Error(`SOURCE_DATE_EPOCH: "${env['SOURCE_DATE_EPOCH']}" must be a number of seconds since 1970`)
  return { root, name, version, description, license, commit, epoch }
}

export const timeOf = ({ epoch }: Source) => new Date(epoch * 1000).toISOString().replace('.000Z', 'Z')
