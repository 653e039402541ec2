// The browser that BROWSER names in tests of `platform login`: notes the URL, signs in as $ACCOUNT, and confirms the command line, or sends $DECISION.

import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { openBrowser } from './browser.ts'
import { signInAt } from './sign-in-at.ts'

const { ACCOUNT: account = 'ada', DECISION: decision = 'approve', OPENED: opened = '', WAIT_FOR: file } = process.env
const url = new URL(process.argv[2] ?? '')
appendFileSync(opened, `${url}\n`)
while (file && !existsSync(file)) await setTimeout(20)
const browser = openBrowser(url.origin)
const path = `${url.pathname}${url.search}`
// With a provider in the URL, the server asks nothing before it redirects to that provider.
const page = url.searchParams.has('provider')
  ? await browser.open((await signInAt(url, account, browser.jar)).href)
  : await browser.signIn(account, path)
const { headers, text } = await browser.submit('/auth/cli', { ...page.fields, decision })
if (headers.location === undefined) throw new Error(text)
const answer = await fetch(headers.location)
appendFileSync(opened, `${answer.status} ${(await answer.text()).replaceAll('\n', ' ')}\n`)
