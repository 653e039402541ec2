// Desktop keychain through libsecret's `secret-tool`. Secrets pass through its streams, never as arguments.

import { spawn } from 'node:child_process'
import { openFiles } from './files.ts'
import type { Keychain } from './machine.ts'

const timeoutMs = 5000

/** Returns undefined if there is no keychain or PLATFORM_KEYCHAIN is off. */
export async function openKeychain(env: NodeJS.ProcessEnv): Promise<Keychain | undefined> {
  if (env['PLATFORM_KEYCHAIN'] === 'off' || !env['DBUS_SESSION_BUS_ADDRESS']) return undefined
  const program = await openFiles(env, () => {}).find('secret-tool')
  if (!program) return undefined
  const call = (args: readonly string[], input: string) => run(program, args, { env, input })
  const attributes = (name: string) => ['service', 'platform-plane', 'context', name]
  return {
    async get(name) {
      const { code, text } = await call(['lookup', ...attributes(name)], '')
      return code === 0 && text ? text.replace(/\n$/, '') : undefined
    },
    async set(name, secret) {
      const { code } = await call(['store', '--label', `platform: ${name}`, ...attributes(name)], secret)
      if (code !== 0) throw new Error('cannot store the key in the keychain')
    },
    async remove(name) {
      await call(['clear', ...attributes(name)], '')
    },
  }
}

type Input = { readonly env: NodeJS.ProcessEnv; readonly input: string }

function run(program: string, args: readonly string[], { env, input }: Input): Promise<{ code: number; text: string }> {
  return new Promise(resolve => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'], timeout: timeoutMs, env })
    const chunks: Buffer[] = []
    child.stdout.on('data', chunk => chunks.push(chunk))
    child.on('error', () => resolve({ code: 127, text: '' }))
    child.on('close', code => resolve({ code: code ?? 1, text: Buffer.concat(chunks).toString() }))
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}
