// Sign-in of the command line: a confirmation in the browser, a one-time code to a loopback port, PKCE for the exchange.

import { hash, timingSafeEqual } from 'node:crypto'
import { badRequest } from '../../api/errors.ts'
import type { JsonObject } from '../../api/object.ts'
import type { Query } from '../../serving/exchange.ts'
import { checkConfirmation, confirmationFields, deviceKey, withSession } from './confirmation.ts'
import { machineName, note, type Route, requireSession, type SignedInCaller, secret, shownAddress } from './context.ts'
import { html } from './html.ts'
import { json, page, redirect } from './page.ts'
import { readFields, readForm } from './read-form.ts'

const codeFor = 120
const maxCodes = 1000

type Wanted = { readonly port: number; readonly state: string; readonly challenge: string; readonly machine: string }

/** Only loopback, an exact path, and a port that needs no privileges: anything else would be an open redirect. */
function wantedOf(query: Query | URLSearchParams): Wanted {
  const [port, state, challenge] = [query.get('port') ?? '', query.get('state') ?? '', query.get('challenge') ?? '']
  const isPort = /^\d{4,5}$/.test(port) && Number(port) >= 1024 && Number(port) <= 65_535
  const isValue = (text: string) => /^[\w-]{43}$/.test(text)
  if (!isPort || !isValue(state) || !isValue(challenge))
    throw badRequest('port, state and challenge of the command line are missing or malformed; run platform login again')
  return { port: Number(port), state, challenge, machine: machineName(query.get('machine')) }
}

const question = html`<p>The command line of this machine asks to act as you.</p>`
const warning = html`<p class="warn">Confirm only if you started <code>platform login</code> yourself, just now.</p>`

const facts = ({ caller }: SignedInCaller, { machine }: Wanted, address: string) =>
  html`<dl><dt>You</dt><dd>${caller.username}</dd><dt>Machine</dt><dd>${machine}</dd><dt>Address</dt><dd>${address}</dd></dl>`

export const cliRoute: Route = (context, exchange) => {
  const wanted = wantedOf(exchange.query)
  return withSession(context, exchange, session =>
    page({
      title: 'Sign in the command line?',
      body: html`${question}${facts(session, wanted, shownAddress(context, exchange))}${warning}
<form method="post" action="cli" class="stack">${confirmationFields(context, session, wanted)}
<button name="decision" value="approve">Sign in</button><button class="plain" name="decision" value="deny">Cancel</button></form>`,
      formTargets: [`http://127.0.0.1:${wanted.port}`],
    }),
  )
}

export const confirmCliRoute: Route = async (context, exchange) => {
  const session = await requireSession(context, exchange)
  const form = await readForm(exchange)
  const wanted = wantedOf(form)
  const { username } = session.caller
  const answer = (fields: object) =>
    redirect(`http://127.0.0.1:${wanted.port}/callback?${new URLSearchParams({ ...fields, state: wanted.state })}`)
  if (form.get('decision') !== 'approve') {
    note(exchange, { user: username, machine: wanted.machine, result: 'CommandLineDenied' })
    return answer({ error: 'access_denied' })
  }
  checkConfirmation(context, session, form, wanted)
  const code = secret(context)
  const data: JsonObject = { keyUid: session.caller.keyUid ?? '', challenge: wanted.challenge, machine: wanted.machine }
  await context.states.put('cli', code, { data, ttl: codeFor, max: maxCodes })
  note(exchange, { user: username, machine: wanted.machine, result: 'CommandLineConfirmed' })
  return answer({ code })
}

export const cliTokenRoute: Route = async (context, exchange) => {
  const { code = '', verifier = '' } = await readFields(exchange)
  // A wrong verifier uses up the code, so nobody can try several.
  const data = await context.states.take('cli', code)
  const challenge = Buffer.from(hash('sha256', verifier, 'base64url'))
  const expected = Buffer.from(String(data?.['challenge'] ?? ''))
  if (!data || expected.length !== challenge.length || !timingSafeEqual(challenge, expected))
    return json(400, { error: 'invalid_grant', error_description: 'the code is unknown, expired or was used already' })
  return json(200, await deviceKey(context, exchange, data))
}
