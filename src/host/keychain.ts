// The keychain of a desktop, through libsecret's own program: secrets go in and out by its streams, never as arguments. io.ts hands it on.

import { spawn } from 'node:child_process'
import { openFiles } from './files.ts'
import type { Keychain } from './machine.ts'

const within = 5000

/** undefined where there is none, or where PLATFORM_KEYCHAIN is off. */
export async function openKeychain(env: NodeJS.ProcessEnv): Promise<Keychain | undefined> {
  if (env['PLATFORM_KEYCHAIN'] === 'off' || !env['DBUS_SESSION_BUS_ADDRESS']) return undefined
  const program = await openFiles(env, () => {}).find('secret-tool')
  if (!program) return undefined
  const call = (args: readonly string[], input: string) => run(program, args, { env, input })
  const place = (name: string) => ['service', 'platform-plane', 'context', name]
  return {
    async get(name) {
      const { code, text } = await call(['lookup', ...place(name)], '')
      return code === 0 && text ? text.replace(/\n$/, '') : undefined
    },
    async set(name, secret) {
      const { code } = await call(['store', '--label', `platform: ${name}`, ...place(name)], secret)
      if (code !== 0) throw new Error('the keychain did not take the key')
    },
    async remove(name) {
      await call(['clear', ...place(name)], '')
    },
  }
}

type Input = { readonly env: NodeJS.ProcessEnv; readonly input: string }

function run(program: string, args: readonly string[], { env, input }: Input): Promise<{ code: number; text: string }> {
  return new Promise(resolve => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'], timeout: within, env })
    const chunks: Buffer[] = []
    child.stdout.on('data', chunk => chunks.push(chunk))
    child.on('error', () => resolve({ code: 127, text: '' }))
    child.on('close', code => resolve({ code: code ?? 1, text: Buffer.concat(chunks).toString() }))
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}
