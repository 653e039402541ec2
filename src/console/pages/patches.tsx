// The patch playground: object, patches, result, trace, round trip, and a run to a fixpoint.

import { useLocation } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import type { JsonObject } from '../../api/object.ts'
import { useSession } from '../app/session.tsx'
import { patchCommand } from '../data/commands.ts'
import { draftName, useDraft } from '../data/drafts.ts'
import { type Preview, type PreviewInput, preview, type Trace } from '../data/patch-preview.ts'
import { CodeEditor } from '../editor/code-editor.tsx'
import { fromYaml, toYaml } from '../editor/yaml.ts'
import { text } from '../text/common.ts'
import { patchText } from '../text/patches.tsx'
import { Button } from '../ui/button.tsx'
import { SelectField } from '../ui/fields.tsx'
import { Card, Command, CopyButton, Note, Page, Pill, problemOf, Stack } from '../ui/parts.tsx'
import style from './patches.module.css'

const firstObject = `apiVersion: v1
kind: Endpoints
metadata:
  name: web
  namespace: default
  labels:
    app: shop
subsets:
  - addresses:
      - ip: 10.0.0.7
    ports:
      - port: 8080
`
const firstPatches = `patches:
  - path: metadata.labels.app
    expression: '"host-" + value'
    reverseExpression: value.slice(5)
`

const directions = ['toHost', 'toVirtual'] as const

type Shared = { readonly object: string; readonly patches: string; readonly direction: PreviewInput['direction'] }

/** The input is in the fragment, which browsers do not send to the server. */
function readFragment(fragment: string): Shared | undefined {
  try {
    const text = new TextDecoder().decode(Uint8Array.fromBase64(fragment, { alphabet: 'base64url' }))
    const { object, patches, direction } = JSON.parse(text) as Partial<Shared>
    if (typeof object !== 'string' || typeof patches !== 'string') return undefined
    return { object, patches, direction: direction === 'toVirtual' ? 'toVirtual' : 'toHost' }
  } catch {
    return undefined
  }
}

const fragmentOf = (shared: Shared) =>
  new TextEncoder().encode(JSON.stringify(shared)).toBase64({ alphabet: 'base64url', omitPadding: true })

export function PatchesPage() {
  const { hash } = useLocation()
  const shared = useMemo(() => readFragment(hash), [hash])
  return <Playground key={hash} shared={shared} fragment={shared ? hash : ''} />
}

/** An edit of a shared input is a draft of its own. */
function Playground({ shared, fragment }: { shared: Shared | undefined; fragment: string }) {
  const { user } = useSession()
  const [stored, setStored, latest] = useDraft<Shared & { readonly fragment: string }>(
    draftName(user, 'patches', shared ? 'shared' : ''),
  )
  // The name of a draft is not encrypted, so the input of a link is inside.
  const ownDraft = (one: typeof stored) => (one?.fragment === fragment ? one : undefined)
  const draft = ownDraft(stored)
  const setInput = (next: Shared | undefined) => setStored(next && { ...next, fragment })
  const first = shared ?? { object: firstObject, patches: firstPatches, direction: 'toHost' as const }
  const input = draft ?? first
  const [result, setResult] = useState<Preview>()
  const [problem, setProblem] = useState('')
  const [isRunning, setRunning] = useState(false)
  const run = async () => {
    setProblem('')
    // The result of another input would look like one of this input.
    setResult(undefined)
    // On a busy machine, a press can come before the page has drawn the last typed text.
    const typed = ownDraft(latest.current) ?? first
    const object = fromYaml(typed.object)
    const patches = fromYaml(typed.patches)
    if ('problem' in object) return setProblem(patchText.objectProblem(object.problem))
    if ('problem' in patches) return setProblem(patchText.patchesProblem(patches.problem))
    setRunning(true)
    try {
      const list = (patches.object['patches'] ?? []) as readonly JsonObject[]
      setResult(await preview({ object: object.object, patches: list, direction: typed.direction }))
    } catch (error) {
      setProblem(problemOf(error).message)
    } finally {
      setRunning(false)
    }
  }
  const link = new URL(`patches#${fragmentOf(input)}`, document.baseURI).href
  return (
    <Page title={text.patches} sub={patchText.about}>
      {shared && !result && <Note tone="warn">{patchText.fromLink}</Note>}
      <div className={style.bar}>
        <SelectField
          label={patchText.direction}
          value={input.direction}
          options={directions}
          onChange={direction => setInput({ ...input, direction: direction as Shared['direction'] })}
        />
        <Button look="primary" isDisabled={isRunning} onPress={() => run()}>
          {isRunning ? patchText.running : patchText.run}
        </Button>
        <CopyButton value={link} label={patchText.copyLink} />
        {draft && (
          <Button look="quiet" onPress={() => setInput(undefined)}>
            {text.discard}
          </Button>
        )}
      </div>
      {problem && (
        <Note tone="bad">
          <span role="alert">{problem}</span>
        </Note>
      )}
      <div className={style.columns}>
        <Card title={patchText.object}>
          <CodeEditor
            label={patchText.object}
            value={input.object}
            onChange={object => setInput({ ...input, object })}
          />
        </Card>
        <Card title={patchText.patches}>
          <CodeEditor
            label={patchText.patches}
            value={input.patches}
            onChange={patches => setInput({ ...input, patches })}
          />
        </Card>
      </div>
      {result && <Result result={result} />}
      <Command>{patchCommand(input.direction === 'toVirtual')}</Command>
    </Page>
  )
}

/** "Patch 1, expression, line 2, column 5". */
const placeOf = ({ patch, field, line, column }: NonNullable<Preview['problem']>): string =>
  [patch !== undefined && patchText.patch(patch), field, line !== undefined && patchText.place(line, column)]
    .filter(Boolean)
    .join(', ')

function Result({ result }: { result: Preview }) {
  const { problem, problems = [], trace = [], object, reverse, roundTrip, fixpoint, notes = [] } = result
  const all = [...problems, ...(problem ? [problem] : [])]
  return (
    <div className={style.columns}>
      <Stack>
        {all.map(one => (
          <Note key={`${one.message} ${one.patch} ${one.line}`} tone="bad">
            <span role="alert">
              {placeOf(one)}: {one.message}
            </span>
          </Note>
        ))}
        {fixpoint && <Fixpoint {...fixpoint} />}
        {roundTrip && (
          <Card title={patchText.roundTrip}>
            <p>
              {roundTrip.equal ? (
                <Pill tone="ok">{patchText.givesBack}</Pill>
              ) : (
                <Pill tone="warn">{patchText.doesNotGiveBack}</Pill>
              )}
            </p>
            <Changes changes={roundTrip.differences ?? []} />
          </Card>
        )}
        {trace.length > 0 && (
          <Card title={patchText.trace}>
            {trace.map(one => (
              <TraceRow key={one.patch} trace={one} />
            ))}
          </Card>
        )}
        {notes.map(note => (
          <Note key={note}>{note}</Note>
        ))}
      </Stack>
      <Stack>
        {object && (
          <Card title={patchText.result}>
            <CodeEditor label={patchText.result} value={toYaml(object)} />
          </Card>
        )}
        {reverse?.object && (
          <Card title={patchText.back}>
            <CodeEditor label={patchText.backResult} value={toYaml(reverse.object)} />
          </Card>
        )}
      </Stack>
    </div>
  )
}

function Fixpoint({ settled, rounds, changing = [] }: NonNullable<Preview['fixpoint']>) {
  return (
    <Card title={patchText.fixpoint}>
      <p>
        {settled ? (
          <Pill tone="ok">{patchText.settles(rounds)}</Pill>
        ) : (
          <Pill tone="bad">{patchText.neverSettles(rounds)}</Pill>
        )}
      </p>
      {changing.map(({ side, path, patches = [], values = [] }) => (
        <Note key={`${side} ${path}`} tone="warn">
          <span>{patchText.keepsChanging(patches, path, side)}</span>
          <span className={style.change}>{values.map(value => JSON.stringify(value)).join(' → ')}</span>
        </Note>
      ))}
    </Card>
  )
}

function TraceRow({ trace: { patch, path, changes = [], skipped = [], unmatched, error } }: { trace: Trace }) {
  return (
    <div>
      <h3>
        {patchText.patch(patch)}: <code>{path}</code>
      </h3>
      {unmatched && <p>{patchText.unmatched}</p>}
      {error && <p role="alert">{error.message}</p>}
      <Changes changes={changes} />
      {skipped.map(one => (
        <p key={one.path}>
          <code>{one.path}</code> {one.reason}
        </p>
      ))}
    </div>
  )
}

const Changes = ({ changes }: { changes: NonNullable<Trace['changes']> }) => (
  <ul className={style.list}>
    {changes.map(({ path, before, after }) => (
      <li key={path} className={style.change}>
        {path}: {before === undefined ? patchText.absent : JSON.stringify(before)} →{' '}
        {after === undefined ? patchText.removed : JSON.stringify(after)}
      </li>
    ))}
  </ul>
)
