// A bare Debian in namespaces: a root filesystem of Debian's packages, a user, and a network that has only loopback.
//
// The packages are unpacked without their install scripts. Ports are as free as on a new machine.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { npmSettings } from './checkout-copy.ts'
import { type Shell, startShell } from './docs.ts'
import { exec } from './exec.ts'
import { fetchDebian } from './fetch-debian.ts'

const root = join(import.meta.dirname, '../..')
const cache = join(root, 'node_modules/.cache/platform-debian')
const registryProgram = fileURLToPath(new URL('./npm-registry.ts', import.meta.url))
const registryPort = 4873
/** The programs of the README, and the packages of every Debian. */
const packages = ['curl', 'kubectl', '?essential']
const user = 1000

/** The directory of the root filesystem. undefined: not available from the archive, or this process is not root. */
export async function findDebian(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return undefined
  await fetchDebian({ name: 'npm', with: packages, dependencies: 'all', cache, suites: [['trixie']] })
  const folder = existsSync(cache) ? readdirSync(cache).find(name => name.startsWith('npm-')) : undefined
  return folder && join(cache, folder)
}

export type DebianMachine = {
  /** Its root directory, for this process. */
  readonly root: string
  /** The home directory of its user, in it. */
  readonly home: string
  /** Opens a shell of its user for a document, in a directory of `home`. The commands run as written. */
  openShell(home: string, directory: string, env?: NodeJS.ProcessEnv): Shell
  /** Runs a script of sh in it as root. */
  run(script: string): Promise<void>
  close(): Promise<void>
}

/** Everything is in memory, and goes with the namespace. The last program holds the namespaces, until its input ends. */
const boot = (tree: string, directory: string) => `set -e
ip link set lo up
R=${directory}/root
mount -t tmpfs tmpfs ${directory}
mkdir ${directory}/upper ${directory}/work $R
mount -t overlay overlay -o lowerdir=${tree},upperdir=${directory}/upper,workdir=${directory}/work $R
mkdir -p $R/proc $R/dev $R/tmp $R/home/reader
mount -t proc proc $R/proc
mount -t tmpfs -o mode=755 tmpfs $R/dev
for name in null zero full random urandom tty; do touch $R/dev/$name; mount --bind /dev/$name $R/dev/$name; done
mkdir $R/dev/shm
ln -s /proc/self/fd $R/dev/fd
chmod 1777 $R/tmp $R/dev/shm
cp $R/usr/share/base-passwd/passwd.master $R/etc/passwd
cp $R/usr/share/base-passwd/group.master $R/etc/group
echo reader:x:${user}:${user}::/home/reader:/bin/bash >> $R/etc/passwd
echo reader:x:${user}: >> $R/etc/group
echo 127.0.0.1 localhost > $R/etc/hosts
chown ${user}:${user} $R/home/reader
exec chroot $R sh -c 'echo ready; exec cat'
`

export async function bootDebian(tree: string): Promise<DebianMachine> {
  const directory = mkdtempSync(join(tmpdir(), 'platform-debian-'))
  const namespaces = ['--mount', '--propagation', 'private', '--net', '--uts', '--ipc']
  const holder = spawn('unshare', [...namespaces, 'sh', '-c', boot(tree, directory)], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  await ready(holder)
  const pid = String(holder.pid)
  // Not in the root of the machine: it reads files of this one.
  const settings = [join(root, 'package-lock.json'), npmSettings()['npm_config_cache'] ?? '', String(registryPort)]
  const registry = spawn('nsenter', ['--target', pid, '--net', process.execPath, registryProgram, ...settings], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  await ready(registry)
  const inside = ['nsenter', '--target', pid, '--mount', '--net', '--uts', '--ipc', '--root', '--wd']
  const asUser = ['--setuid', String(user), '--setgid', String(user)]
  const env = {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: '/home/reader',
    npm_config_registry: `http://127.0.0.1:${registryPort}`,
  }
  return {
    root: `/proc/${pid}/root`,
    home: env.HOME,
    openShell: (home, directory, more = {}) =>
      startShell({
        home: `/proc/${pid}/root${home}`,
        bash: [...inside, ...asUser, 'sh', '-c', `cd ${home}/${directory} && exec bash "$@"`, 'sh'],
        env: { ...env, HOME: home, ...more },
        toTest: text => text,
        toDocument: text => text,
        patience: 300_000,
        remove: () => {},
      }),
    run: async text => {
      const [file = '', ...args] = [...inside, 'sh', '-ec', text]
      const { code, stdout, stderr } = await exec(file, args, { env })
      assert.equal(code, 0, `${text}\n${stdout}${stderr}`)
    },
    close: async () => {
      for (const child of [registry, holder]) {
        const ended = once(child, 'exit')
        child.kill('SIGKILL')
        await ended
      }
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Waits until the program has printed its first line. */
async function ready(child: ChildProcess): Promise<void> {
  let complaints = ''
  child.stderr?.on('data', chunk => {
    complaints += chunk
  })
  const isReady = once(child.stdout ?? child, 'data').then(() => true)
  assert.ok(await Promise.race([isReady, once(child, 'exit').then(() => false)]), complaints)
}
