// The patch playground: object, patches, result, trace, round trip, and a run to a fixpoint.

import { useState } from 'react'
import type { JsonObject } from '../../api/object.ts'
import { type Preview, type PreviewInput, preview, type Trace } from '../data/patch-preview.ts'
import { CodeEditor } from '../editor/code-editor.tsx'
import { fromYaml, toYaml } from '../editor/yaml.ts'
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

type Shared = { readonly object: string; readonly patches: string; readonly direction: PreviewInput['direction'] }

/** The input is in the fragment, which browsers do not send to the server. */
function readFragment(): Shared | undefined {
  try {
    const text = new TextDecoder().decode(Uint8Array.fromBase64(location.hash.slice(1), { alphabet: 'base64url' }))
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
  const [shared] = useState(readFragment)
  const [input, setInput] = useState<Shared>(
    shared ?? { object: firstObject, patches: firstPatches, direction: 'toHost' },
  )
  const [result, setResult] = useState<Preview>()
  const [problem, setProblem] = useState('')
  const [isRunning, setRunning] = useState(false)
  const run = async () => {
    setProblem('')
    const object = fromYaml(input.object)
    const patches = fromYaml(input.patches)
    if ('problem' in object) return setProblem(`Object: ${object.problem}`)
    if ('problem' in patches) return setProblem(`Patches: ${patches.problem}`)
    setRunning(true)
    try {
      const list = (patches.object['patches'] ?? []) as readonly JsonObject[]
      setResult(await preview({ object: object.object, patches: list, direction: input.direction }))
    } catch (error) {
      setProblem(problemOf(error).message)
    } finally {
      setRunning(false)
    }
  }
  const link = new URL(`patches#${fragmentOf(input)}`, document.baseURI).href
  return (
    <Page
      title="Patch playground"
      sub="The server evaluates the patches in its sandbox. Nothing is stored, and no cluster is touched."
    >
      {shared && !result && <Note tone="warn">This input came with the link. Read it before you run it.</Note>}
      <div className={style.bar}>
        <SelectField
          label="Direction"
          value={input.direction}
          options={['toHost', 'toVirtual']}
          onChange={direction => setInput({ ...input, direction: direction as Shared['direction'] })}
        />
        <Button look="primary" isDisabled={isRunning} onPress={() => void run()}>
          {isRunning ? 'Running…' : 'Run'}
        </Button>
        <CopyButton value={link} label="Copy a link to this input" />
      </div>
      {problem && (
        <Note tone="bad">
          <span role="alert">{problem}</span>
        </Note>
      )}
      <div className={style.columns}>
        <Card title="Object">
          <CodeEditor label="Object" value={input.object} onChange={object => setInput({ ...input, object })} />
        </Card>
        <Card title="Patches">
          <CodeEditor label="Patches" value={input.patches} onChange={patches => setInput({ ...input, patches })} />
        </Card>
      </div>
      {result && <Result result={result} />}
      <Command>{`platform vcluster patch --server -f vcluster.yaml --object object.yaml${input.direction === 'toVirtual' ? ' --reverse' : ''}`}</Command>
    </Page>
  )
}

function Result({ result }: { result: Preview }) {
  const { problem, problems = [], trace = [], object, reverse, roundTrip, fixpoint, notes = [] } = result
  const all = [...problems, ...(problem ? [problem] : [])]
  return (
    <div className={style.columns}>
      <Stack>
        {all.map(one => (
          <Note key={`${one.message} ${one.patch} ${one.line}`} tone="bad">
            <span role="alert">
              {one.patch !== undefined && `Patch ${one.patch + 1}, `}
              {one.field}
              {one.line !== undefined && `, line ${one.line}, column ${one.column}`}: {one.message}
            </span>
          </Note>
        ))}
        {fixpoint && <Fixpoint {...fixpoint} />}
        {roundTrip && (
          <Card title="Round trip">
            <p>
              {roundTrip.equal ? (
                <Pill tone="ok">gives back the original</Pill>
              ) : (
                <Pill tone="warn">does not give back the original</Pill>
              )}
            </p>
            <Changes changes={roundTrip.differences ?? []} />
          </Card>
        )}
        {trace.length > 0 && (
          <Card title="Trace">
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
          <Card title="Result">
            <CodeEditor label="Result" value={toYaml(object)} />
          </Card>
        )}
        {reverse?.object && (
          <Card title="And back">
            <CodeEditor label="Result of the reverse direction" value={toYaml(reverse.object)} />
          </Card>
        )}
      </Stack>
    </div>
  )
}

function Fixpoint({ settled, rounds, changing = [] }: NonNullable<Preview['fixpoint']>) {
  return (
    <Card title="Again and again">
      <p>
        {settled ? (
          <Pill tone="ok">settles after {rounds === 1 ? '1 round' : `${rounds} rounds`}</Pill>
        ) : (
          <Pill tone="bad">never settles: still changing after {rounds} rounds</Pill>
        )}
      </p>
      {changing.map(({ side, path, patches = [], values = [] }) => (
        <Note key={`${side} ${path}`} tone="warn">
          <span>
            {patches.map(index => `Patch ${index + 1}`).join(' and ') || 'Something'} keeps changing <code>{path}</code>{' '}
            of the {side} object. Make <code>reverseExpression</code> undo <code>expression</code>.
          </span>
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
        Patch {patch + 1}: <code>{path}</code>
      </h3>
      {unmatched && <p>No field has this path.</p>}
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
        {path}: {before === undefined ? '(absent)' : JSON.stringify(before)} →{' '}
        {after === undefined ? '(removed)' : JSON.stringify(after)}
      </li>
    ))}
  </ul>
)
