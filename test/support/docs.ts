// Reads the code blocks of a document and runs them like its reader: one shell per document, with the real program and kubectl.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './ports.ts'

/** `language how`, from the opening fence: `sh`, `sh background`, `sh ci`, `sh release`, `text`, `yaml`, `json`, `ts`, `tree`. */
export type Block = { readonly how: string; readonly text: string; readonly line: number }

const root = join(import.meta.dirname, '../..')

export function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = []
  let open: { how: string; lines: string[]; line: number } | undefined
  for (const [index, line] of markdown.split('\n').entries()) {
    if (!line.startsWith('```')) open?.lines.push(line)
    else if (open) {
      blocks.push({ how: open.how, text: `${open.lines.join('\n')}\n`, line: open.line })
      open = undefined
    } else open = { how: line.slice(3).trim(), lines: [], line: index + 1 }
  }
  assert.equal(open, undefined, `the block of line ${open?.line} is not closed`)
  return blocks
}

/** `<word>` matches anything on a line, `…` the rest of a line, and a line with only `…` any lines. Columns may be wider. */
function matches(expected: string, printed: string): boolean {
  const lines = expected.trimEnd().split('\n')
  const pattern = lines.map(line => (line.trim() === '…' ? '(?:.*\\n)*?' : `${linePattern(line.trimEnd())}[ \\t]*\\n`))
  return new RegExp(`^${pattern.join('')}\\s*$`).test(`${printed.trimEnd()}\n`)
}

const linePattern = (line: string) =>
  line
    .split(/(<[\w -]+>|…| {2,})/)
    .map((part, index) => {
      if (index % 2 === 0) return part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      return part === '…' ? '.*' : part.startsWith('<') ? '.+' : ' {2,}'
    })
    .join('')

/**
 * The only changes to the commands: free ports instead of the three documented ones, and no second installation of dependencies.
 * Directories stay, because each document runs in its own checkout: links to this one, without `data`.
 */
type Ports = { readonly https: number; readonly http: number; readonly gateway: number }
const toTest = (command: string, { https, http, gateway }: Ports) =>
  command
    .replaceAll('npm ci && ', '')
    .replaceAll('8443', `${https}`)
    .replaceAll('8080', `${http}`)
    .replaceAll('9443', `${gateway}`)
const toDocument = (printed: string, { https, http, gateway }: Ports) =>
  printed.replaceAll(`:${https}`, ':8443').replaceAll(`:${http}`, ':8080').replaceAll(`:${gateway}`, ':9443')

export type Shell = {
  /** Returns the output of the commands, errors included. All must succeed. */
  run(commands: string): Promise<string>
  /** Starts a background command, and waits until it has printed the expected text. */
  start(command: string, expected: string): Promise<void>
  /** Ends started programs like Ctrl-C, and removes everything. */
  close(): Promise<void>
}

type ShellOptions = {
  /** Its files are in the directory of the shell. Default: this checkout. */
  readonly from?: string
  readonly env?: NodeJS.ProcessEnv
}

/** In a directory of its own on this machine. */
export async function openShell(kubectl: string, { from = root, env: more = {} }: ShellOptions = {}): Promise<Shell> {
  const home = mkdtempSync(join(tmpdir(), 'platform-docs-'))
  const checkout = join(home, 'platform')
  for (const directory of [checkout, join(home, 'bin')]) mkdirSync(directory)
  for (const name of readdirSync(from))
    if (!['.git', 'data'].includes(name)) symlinkSync(join(from, name), join(checkout, name))
  symlinkSync(kubectl, join(home, 'bin/kubectl'))
  const ports = { https: await freePort(), http: await freePort(), gateway: await freePort() }
  const env = {
    ...more,
    PATH: `${join(home, 'bin')}:${process.env['PATH']}`,
    HOME: home,
    KUBERC: 'off',
    NO_UPDATE_NOTIFIER: '1',
    npm_config_update_notifier: 'false',
    PLATFORM_HTTPS: `127.0.0.1:${ports.https}`,
    PLATFORM_HTTP: `127.0.0.1:${ports.http}`,
  }
  return startShell({
    home,
    bash: ['bash'],
    cwd: checkout,
    env,
    toTest: text => toTest(text, ports),
    toDocument: text => toDocument(text, ports),
    patience: 90_000,
    remove: () => rmSync(home, { recursive: true, force: true }),
  })
}

export type ShellPlace = {
  /** The directory that the commands know as $HOME. */
  readonly home: string
  /** The command that runs bash in the directory of the document. */
  readonly bash: readonly string[]
  readonly cwd?: string
  readonly env: NodeJS.ProcessEnv
  /** Changes to commands, and back in what they print. */
  readonly toTest: (text: string) => string
  readonly toDocument: (text: string) => string
  /** Milliseconds until a command has failed. */
  readonly patience: number
  readonly remove: () => void
}

export function startShell(place: ShellPlace): Shell {
  const { home, env, cwd, toTest, toDocument, patience } = place
  const [file = '', ...args] = place.bash
  const options = { ...(cwd && { cwd }), env, detached: true } as const
  const shell = spawn(file, [...args, '--noprofile', '--norc'], { ...options, stdio: ['pipe', 'pipe', 'pipe'] })
  const printed = listen(shell, 'stdout')
  const started: Started[] = []
  // Removes the files of a test that failed before its close().
  const leave = () => {
    for (const one of [...started, { child: shell }]) signal(one.child, 'SIGKILL')
    place.remove()
  }
  process.once('exit', leave)
  shell.stdin.write(`set -eE -o pipefail; trap 'echo "exit code $?"' ERR; exec 2>&1\n`)
  let count = 0

  return {
    async run(commands) {
      const mark = `\0${++count}\n`
      writeFileSync(join(home, `${count}.sh`), toTest(commands))
      const before = printed.text().length
      // Sourced, so that variables stay; the marker ends the output.
      shell.stdin.write(`. "$HOME/${count}.sh" </dev/null\nprintf '\\0%s\\n' ${count}\n`)
      const whole = await printed.until(text => text.endsWith(mark), patience)
      assert.ok(whole.endsWith(mark), `these commands failed:\n${commands}\nthey printed:\n${whole.slice(before)}`)
      return toDocument(whole.slice(before, -mark.length))
    },
    async start(command, expected) {
      const child = spawn(file, [...args, '-c', toTest(command)], { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
      started.push({ child, exited: once(child, 'exit') })
      const [output, complaints] = [listen(child, 'stdout'), listen(child, 'stderr')]
      const text = await output.until(one => matches(expected, toDocument(one)), patience)
      const seen = `${text}${complaints.text()}`
      assert.ok(matches(expected, toDocument(text)), `expected:\n${expected}\nprinted:\n${seen}`)
    },
    async close() {
      shell.stdin.end('exit 0\n')
      for (const { child, exited } of started) {
        signal(child, 'SIGINT')
        await exited
      }
      process.off('exit', leave)
      leave()
    },
  }
}

/** Runs the blocks of a document in order, `sh` or `sh release`, and compares their output with the page. */
export async function runBlocks(shell: Shell, path: string, how: 'sh' | 'sh release' = 'sh'): Promise<void> {
  const blocks = blocksOf(readDocument(path))
  assert.ok(
    blocks.some(block => block.how.startsWith(how)),
    `${path} has no such block`,
  )
  for (const [index, block] of blocks.entries()) {
    const expected = blocks[index + 1]?.how === 'text' ? blocks[index + 1]?.text : undefined
    if (block.how === `${how} background`) await shell.start(block.text, expected ?? '…')
    if (block.how !== how) continue
    const printed = await shell.run(block.text)
    if (expected !== undefined)
      assert.ok(
        matches(expected, printed),
        `${path}:${block.line} prints:\n${printed}\nand the page says:\n${expected}`,
      )
  }
}

type Started = { readonly child: ChildProcess; readonly exited: Promise<unknown> }

/** To the program and its children, like a terminal. */
function signal(child: ChildProcess, name: NodeJS.Signals): void {
  if (child.exitCode === null && child.signalCode === null && child.pid) process.kill(-child.pid, name)
}

/** The output of a program, and a wait for expected output. The wait also ends with the program or with the time limit. */
function listen(child: ChildProcess, stream: 'stdout' | 'stderr') {
  let text = ''
  let changed = () => {}
  let ended = false
  child[stream]?.on('data', chunk => {
    text += chunk
    changed()
  })
  child.on('close', () => {
    ended = true
    changed()
  })
  const until = (wanted: (text: string) => boolean, milliseconds: number) =>
    new Promise<string>(resolve => {
      const timer = setTimeout(() => resolve(text), milliseconds)
      changed = () => {
        if (!ended && !wanted(text)) return
        clearTimeout(timer)
        resolve(text)
      }
      changed()
    })
  return { text: () => text, until }
}

export const readDocument = (path: string) => readFileSync(join(root, path), 'utf8')
