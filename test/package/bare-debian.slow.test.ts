// The quick starts, in a bare Debian and as written: with Debian's npm, curl and kubectl, as an ordinary user, on the documented ports.
//
// The network of the machine is only loopback. `npm ci` installs from a registry there, which has the packages of the lock file.

import assert from 'node:assert/strict'
import { cpSync, existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { copyCheckout } from '../support/checkout-copy.ts'
import { bootDebian, type DebianMachine, findDebian } from '../support/debian-machine.ts'
import { blocksOf, readDocument, runBlocks } from '../support/docs.ts'
import { findEtcd } from '../support/etcd.ts'
import { notRun } from '../support/missing-tool.ts'

const quickStarts = 'docs/QUICK-START.md'

/** The first one installs the packages that the pages without `npm ci` use. */
const pages = [
  quickStarts,
  'README.md',
  'docs/HIGH-AVAILABILITY.md',
  'docs/KUBERNETES.md',
  'docs/GITOPS.md',
  'docs/TERRAFORM.md',
]

const reference =
  'the quick start has the commands for its task; docs-shell.slow.test.ts runs the rest of the page in the checkout'
/** Pages that a quick start links to, and why they do not run here. */
const notHere: { readonly [page: string]: string } = {
  'docs/INSTALL.md':
    'it needs the artefacts of a release: release.slow.test.ts builds them and runs it in such a machine',
  'docs/CLI.md': reference,
  'docs/CONNECTED-CLUSTERS.md': reference,
  'docs/MONITORING.md': reference,
  'docs/OPERATIONS.md': reference,
  'docs/SIGN-IN.md': reference,
}

const hasCommands = (page: string) => blocksOf(readDocument(page)).some(({ how }) => how.startsWith('sh'))

test('every page that a quick start links to runs here, or has a reason', () => {
  const links = readDocument(quickStarts).matchAll(/\]\(([\w./-]+\.md)/g)
  const linked = new Set([...links].map(([, to = '']) => join(dirname(quickStarts), to)))
  assert.ok(linked.size > 5)
  for (const page of linked) assert.ok(!hasCommands(page) || pages.includes(page) || notHere[page], page)
})

const tree = await findDebian()
const etcd = await findEtcd()
if (!tree) notRun('an archive of Debian, or root')
else if (!etcd) notRun('etcd')
else
  suite('in a bare Debian', () => {
    let machine: DebianMachine
    before(async () => {
      machine = await bootDebian(tree)
      const checkout = await copyCheckout()
      cpSync(checkout.directory, join(machine.root, 'srv/platform'), {
        recursive: true,
        filter: path => basename(path) !== 'node_modules',
      })
      checkout.remove()
      cpSync(etcd.etcd, join(machine.root, 'usr/local/bin/etcd'))
    })
    after(() => machine.close())
    for (const page of pages) test(page, () => runPage(machine, page))
  })

/** In a home directory of its own, with a checkout. */
async function runPage(machine: DebianMachine, page: string): Promise<void> {
  const home = `${machine.home}/${basename(page, '.md')}`
  const first = `${machine.home}/${basename(quickStarts, '.md')}`
  const installs = blocksOf(readDocument(page)).some(({ text }) => text.includes('npm ci'))
  await machine.run(`mkdir ${home}; cp -R /srv/platform ${home}; chown -R reader: ${home}`)
  if (!installs) await machine.run(`ln -s ${first}/platform/node_modules ${home}/platform/`)
  const shell = machine.openShell(home, 'platform', { ETCD_BINARY: '/usr/local/bin/etcd' })
  try {
    await runBlocks(shell, page)
  } finally {
    await shell.close()
  }
  assert.ok(!existsSync(join(machine.root, home, 'platform/data/lock.pid')), 'the server has stopped')
}
