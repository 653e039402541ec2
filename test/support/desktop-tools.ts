// Desktop tools that build machines lack: zsh, fish, and a keyring behind a session bus. Fetched like kubectl.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { CliHome } from './cli-home.ts'
import { fetchDebian } from './fetch-debian.ts'
import { notRun } from './missing-tool.ts'

const cache = join(import.meta.dirname, '../../node_modules/.cache/platform-tools')
const shells = ['zsh-common', 'fish', 'fish-common', 'libpcre2-32-0']
const keyring = ['gnome-keyring', 'libgck-1-0', 'libgcr-base-3-1', 'libcap-ng0', 'libp11-kit0']
const libsecret = ['libsecret-tools', 'libsecret-1-0', 'libglib2.0-0', 'libglib2.0-0t64']
const bus = ['dbus-daemon', 'dbus-bin', 'libdbus-1-3', 'libexpat1']

/** The environment in which its programs find each other and their libraries. */
export type Desktop = {
  readonly tree: string
  readonly env: { readonly PATH: string; readonly LD_LIBRARY_PATH: string }
}

/** undefined if this machine does not run Debian, or its archive is unreachable. */
export async function findDesktop(): Promise<Desktop | undefined> {
  return (await search()) ?? (await fetchDesktop())
}

async function fetchDesktop(): Promise<Desktop | undefined> {
  const [, release] = /^VERSION_CODENAME=(\w+)$/m.exec(readText('/etc/os-release')) ?? []
  // From the release of this machine, because they link to its libraries.
  if (release)
    await fetchDebian({ name: 'zsh', with: [...shells, ...keyring, ...libsecret, ...bus], cache, suites: [[release]] })
  return search()
}

async function search(): Promise<Desktop | undefined> {
  const names = await readdir(cache).catch(() => [])
  const name = names.find(one => one.startsWith('zsh-'))
  if (!name) return undefined
  const tree = join(cache, name)
  // A relocated fish finds its functions only if both of its directories are next to it.
  await mkdir(join(tree, 'usr/etc/fish'), { recursive: true })
  const directories = (await readdir(join(tree, 'usr/lib'))).filter(one => one.endsWith('-linux-gnu'))
  const libraries = directories.map(one => join(tree, 'usr/lib', one))
  const paths = [join(tree, 'usr/bin'), join(tree, 'bin'), process.env['PATH']]
  return { tree, env: { PATH: paths.join(':'), LD_LIBRARY_PATH: libraries.join(':') } }
}

/** Declares tests that need one of its programs, or one test with the reason why they cannot run. */
export function withDesktop(desktop: Desktop | undefined, program: string, declare: (desktop: Desktop) => void): void {
  const isThere = desktop && ['bin', 'usr/bin'].some(one => existsSync(join(desktop.tree, one, program)))
  if (isThere) declare(desktop)
  else notRun(program)
}

/** A session bus with an unlocked keyring while `commands` run in a home, with `stdin`; returns their output. */
export function inSession({ tree, env }: Desktop, { directory: home, by }: CliHome, commands: string, stdin: string) {
  const run = join(home, 'run')
  mkdirSync(run, { recursive: true, mode: 0o700 })
  const policy = '<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>'
  const config = `<busconfig><type>session</type><listen>unix:dir=${run}</listen><auth>EXTERNAL</auth><policy context="default">${policy}</policy></busconfig>\n`
  writeFileSync(join(home, 'bus.conf'), config)
  const script = `printf pass > "${home}/pass"
gnome-keyring-daemon --foreground --unlock --components=secrets < "${home}/pass" > /dev/null 2>&1 &
daemon=$!
trap 'kill $daemon; wait $daemon' EXIT
until secret-tool search --all none none > /dev/null 2>&1; do kill -0 $daemon || exit 99; done
${commands}
`
  writeFileSync(join(home, 'session.sh'), script)
  const bus = ['--config-file', join(home, 'bus.conf'), '--dbus-daemon', join(tree, 'usr/bin/dbus-daemon')]
  return by([join(tree, 'usr/bin/dbus-run-session'), ...bus, '--', 'sh', join(home, 'session.sh')], {
    env: { ...env, XDG_RUNTIME_DIR: run, XDG_DATA_HOME: join(home, 'data') },
    stdin,
    timeout: 60_000,
  })
}

const readText = (file: string) => {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
