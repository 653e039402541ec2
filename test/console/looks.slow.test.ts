// Every page in both themes, wide and narrow: accessible (axe), without horizontal scrolling, and usable at 400 % zoom.
// With PLATFORM_SHOTS=DIRECTORY, saves a picture of each. Those of docs/CONSOLE.md are secret, why, history and home (dark), 1280 pixels wide.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { notRun } from '../support/missing-tool.ts'
import { type ConsoleStage, found, openConsoleStage, ours } from './stage.ts'

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const shots = process.env['PLATFORM_SHOTS']

/** A path, and a text that shows that the page is complete. */
const pages: { readonly [name: string]: readonly [path: string, ready: string] } = {
  home: ['', 'Keys about to expire'],
  teams: ['teams', 'Team web'],
  team: ['teams/web', 'RolesResolved'],
  members: ['teams/web/members', 'Joined through'],
  permissions: ['teams/web/permissions', 'No role is bound to this team'],
  yaml: ['teams/web/yaml', 'displayName'],
  events: ['teams/web/events', 'Search the audit log'],
  keys: ['keys', 'Administrator'],
  key: ['keys/ci', 'Reads project shop.'],
  secrets: ['secrets', 'registry'],
  secret: ['ns/default/secrets/registry', 'Who can read it'],
  history: ['ns/default/secrets/registry/history?diff=1..2', '1 key differs'],
  access: ['ns/default/secrets/registry/access', 'Who can change it'],
  'project-secrets': ['project-secrets', 'payment'],
  users: ['users', 'Ada Lovelace'],
  roles: ['access/clusterroles', 'platform-admin'],
  clusters: ['clusters', 'Production'],
  cluster: ['clusters/prod', 'namespaces "shop" not found'],
  create: ['teams/new', 'Display name'],
  'create-yaml': ['teams/new?as=yaml', 'apiVersion'],
  why: ['access/why?verb=patch&resource=teams&group=management.platform.sh&name=web&user=bob', 'What would allow it'],
  'who-can': [
    'access/why?verb=get&resource=sharedsecrets&group=management.platform.sh&namespace=default&name=registry&who=true',
    'team web',
  ],
  audit: ['audit', 'Show new events'],
  patches: ['patches', 'Direction'],
  tokens: ['tokens/new', 'Issue a token'],
  user: ['users/ada', 'Ada Lovelace'],
  missing: ['nowhere/at/all', 'There is no page at this address'],
}

if (!found) notRun('Chromium')
else
  suite('console: looks', () => {
    let stage: ConsoleStage
    let page: Page
    before(async () => {
      stage = await openConsoleStage()
      const secrets = `${ours}/namespaces/default/sharedsecrets`
      const spec = { displayName: 'Team web', users: ['ada', 'linus'], groups: ['corp:web'] }
      await stage.ask('POST', `${ours}/teams`, { metadata: { name: 'web', labels: { tier: 'core' } }, spec })
      await stage.ask('POST', secrets, {
        metadata: { name: 'registry' },
        spec: { stringData: { password: 'one', user: 'svc' }, access: [{ verbs: ['get'], teams: ['web'] }] },
      })
      const merge = { 'content-type': 'application/merge-patch+json' }
      await stage.ask('PATCH', `${secrets}/registry`, { spec: { stringData: { password: 'two' } } }, merge)
      await stage.ask('POST', `${ours}/namespaces/p-shop/projectsecrets`, {
        metadata: { name: 'payment' },
        spec: { stringData: { token: 'x' } },
      })
      await stage.ask('POST', `${ours}/ownedaccesskeys`, {
        metadata: { name: 'ci' },
        spec: { displayName: 'Pipeline', ttl: 604_800, scope: { projects: [{ project: 'shop', readOnly: true }] } },
      })
      await stage.ask('POST', `${ours}/users`, {
        metadata: { name: 'ada' },
        spec: { username: 'ada', displayName: 'Ada Lovelace', email: 'ada@example.org' },
      })
      const { metadata } = await stage.ask('POST', `${ours}/clusters`, {
        metadata: { name: 'prod', labels: { region: 'eu' } },
        spec: { displayName: 'Production', projects: [{ project: 'shop', namespaces: ['shop'] }] },
      })
      const subject = `platform:cluster:prod:${metadata.uid}`
      await stage.ask('POST', `${ours}/ownedaccesskeys`, {
        metadata: { name: 'agent-of-prod' },
        spec: { displayName: 'Agent of cluster prod', subject, scope: { roles: [{ role: 'agent' }] } },
      })
      const problem = { reason: 'NotFound', message: 'namespaces "shop" not found', namespace: 'shop', name: 'payment' }
      const status = { kubernetesVersion: 'v1.34.1', lastContact: new Date().toISOString(), problems: [problem] }
      await stage.ask('PATCH', `${ours}/clusters/prod/status`, { status }, merge)
      page = await stage.signedIn()
    })
    after(() => stage.close())

    /** Findings of axe. Its script does not pass the content security policy of the page, so it is not a script element. */
    const findings = async (): Promise<readonly string[]> => {
      const found =
        (await page.evaluate(`axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })
        .then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(node => node.html).slice(0, 3).join(' | ')))`)) as readonly string[]
      return found
    }
    const visit = async ([path, ready]: readonly [string, string]) => {
      await page.goto(stage.url + path)
      await page.getByText(ready, { exact: false }).first().waitFor()
    }
    /** Pixels to scroll sideways, in the page or in a list. */
    const widest = () =>
      page.evaluate<number>(`Math.max(...[document.documentElement, ...document.querySelectorAll('[role=grid]')]
        .map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth))`)

    for (const [name, place] of Object.entries(pages))
      test(`${name}: no finding of axe in light and dark, wide and narrow`, async () => {
        await visit(place)
        await page.evaluate(axe)
        for (const scheme of ['light', 'dark'] as const)
          for (const width of [1280, 390]) {
            await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
            await page.setViewportSize({ width, height: 800 })
            await page.locator(`html[data-theme=${scheme}]`).waitFor({ state: 'attached' })
            assert.deepEqual(await findings(), [], `${name} ${scheme} ${width}`)
            assert.ok((await widest()) <= 0, `${name} scrolls sideways at ${width} pixels`)
            if (shots) await page.screenshot({ path: join(shots, `${name}-${scheme}-${width}.png`) })
          }
        // 1280 pixels at 400 %.
        await page.setViewportSize({ width: 320, height: 256 })
        assert.ok((await widest()) <= 0, `${name} scrolls sideways at 400 %`)
        await page.setViewportSize({ width: 1280, height: 800 })
      })
  })
