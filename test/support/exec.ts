// Runs a program and returns its output. The tool finders and the kubectl tests use it.

import { spawn } from 'node:child_process'

export type Output = { readonly code: number; readonly stdout: string; readonly stderr: string }
export type ExecOptions = {
  readonly stdin?: string
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
  readonly timeout?: number
}

/** Does not reject if the program fails: returns its code. Returns 127 if it cannot be started, and 124 if it hangs. */
export function exec(file: string, args: readonly string[], options: ExecOptions = {}): Promise<Output> {
  return new Promise(resolve => {
    const child = spawn(file, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(options.env && { env: options.env }),
      ...(options.cwd && { cwd: options.cwd }),
    })
    const out: Buffer[] = []
    const err: Buffer[] = []
    const end = (code: number, note = '') => {
      clearTimeout(timer)
      resolve({ code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() + note })
    }
    let late = false
    const timer = setTimeout(() => {
      late = true
      child.kill('SIGKILL')
    }, options.timeout ?? 60_000)
    child.stdout.on('data', chunk => out.push(chunk))
    child.stderr.on('data', chunk => err.push(chunk))
    child.on('error', error => end(127, error.message))
    child.on('close', code => (late ? end(124, `\n${file} did not end in time`) : end(code ?? 1)))
    // A program that does not read its input closes the pipe: its exit code is the result.
    child.stdin.on('error', () => {})
    child.stdin.end(options.stdin ?? '')
  })
}
