// Runs a program for the build. Throws with its output if it fails.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const execute = promisify(execFile)

export type RunOptions = { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv }

export async function run(file: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  try {
    return (await execute(file, args, { ...options, maxBuffer: 1 << 28 })).stdout
  } catch (error) {
    const { code, stdout = '', stderr = '' } = error as { code?: string | number; stdout?: string; stderr?: string }
    if (code === 'ENOENT') throw new Error(`cannot run ${file}: not installed; install it and try again`)
    throw new Error(`${file} ${args.join(' ')} failed with ${code}:\n${stdout}${stderr}`)
  }
}
