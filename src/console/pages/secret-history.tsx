// The versions of a secret: who changed which keys, the difference between two, and the way back.

import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { diffCommand, rollbackCommand } from '../data/commands.ts'
import { objectKey } from '../data/object.ts'
import { oneOf } from '../data/places.ts'
import { readHistory, readValue, rollBack, type SecretValue, type Version, versionOf } from '../data/secrets.ts'
import { text } from '../text/common.ts'
import { secretText } from '../text/secrets.tsx'
import { ActionButton, Button } from '../ui/button.tsx'
import { DialogButtons, Modal } from '../ui/dialog.tsx'
import { Ago, Card, Command, ErrorState, Loading, Note, Pill, problemOf, Stack } from '../ui/parts.tsx'
import style from './secret-data.module.css'
import type { TabProps } from './tab.ts'

export function SecretHistory({ kind, at, object }: TabProps) {
  const navigate = useNavigate()
  const { diff = '' } = useSearch({ strict: false }) as { readonly diff?: string }
  const [target, setTarget] = useState<Version>()
  const { data, error, isPending } = useQuery({
    queryKey: ['history', kind.id, at, versionOf(object)],
    queryFn: () => readHistory(kind, at),
  })
  if (isPending) return <Loading />
  if (error) return <ErrorState error={error} />
  const compare = ({ number }: Version) => void navigate({ to: '.', search: { diff: `${number - 1}..${number}` } })
  return (
    <Stack>
      <Card title={secretText.versions}>
        <table className={style.table}>
          <thead>
            <tr>
              <th scope="col">{secretText.columns.version}</th>
              <th scope="col">{secretText.columns.keys}</th>
              <th scope="col">{secretText.columns.who}</th>
              <th scope="col">{secretText.columns.when}</th>
              <th scope="col">
                <span className="visually-hidden">{text.actions}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.map(version => (
              <tr key={version.number}>
                <td className={style.version}>
                  {version.number} {version.current && <Pill tone="ok">{secretText.current}</Pill>}
                  {version.restored !== undefined && <Pill>{secretText.restores(version.restored)}</Pill>}
                </td>
                <td className={style.value}>{(version.changed ?? []).join(', ')}</td>
                <td>
                  {version.author} {version.key && version.key !== version.author && secretText.withKey(version.key)}
                </td>
                <td>
                  <Ago at={version.time} />
                </td>
                <td className={style.buttons}>
                  {data.some(({ number }) => number === version.number - 1) && (
                    <Button
                      look="quiet"
                      aria-label={secretText.compareNamed(version.number)}
                      onPress={() => compare(version)}
                    >
                      {secretText.compare}
                    </Button>
                  )}
                  {!version.current && (
                    <ActionButton
                      look="quiet"
                      action={{ verb: 'patch', kind, ...at }}
                      aria-label={secretText.rollBackNamed(version.number)}
                      onPress={() => setTarget(version)}
                    >
                      {secretText.rollBack}
                    </ActionButton>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Card>
      {diff && <Difference kind={kind} at={at} object={object} diff={diff} versions={data} />}
      {target && (
        <RollBackDialog kind={kind} at={at} object={object} version={target} onClose={() => setTarget(undefined)} />
      )}
    </Stack>
  )
}

/** Compares by the changed keys of the versions between. A value is read only when somebody asks. */
function Difference({ kind, at, diff, versions }: TabProps & { diff: string; versions: readonly Version[] }) {
  const [, one, other] = /^(\d+)\.\.(\d+)$/.exec(diff) ?? []
  if (one === undefined || other === undefined) return null
  const [from, to] = [Number(one), Number(other)].toSorted((a, b) => a - b) as [number, number]
  const between = versions.filter(({ number }) => number > from && number <= to)
  const keys = [...new Set(between.flatMap(({ changed = [] }) => changed))].toSorted()
  return (
    <Card title={secretText.against(from, to)}>
      <p>{secretText.differing(keys.length)}</p>
      <div className={style.diff}>
        {keys.map(key => (
          <KeyDifference key={key} kind={kind} at={at} name={key} from={from} to={to} />
        ))}
      </div>
      <Command>{diffCommand(kind, at, from, to)}</Command>
    </Card>
  )
}

type KeyDifferenceProps = Pick<TabProps, 'kind' | 'at'> & { name: string; from: number; to: number }

function KeyDifference({ kind, at, name, from, to }: KeyDifferenceProps) {
  const [shown, setShown] = useState<readonly (SecretValue | undefined)[]>()
  const [problem, setProblem] = useState('')
  const reveal = async () => {
    try {
      setShown(await Promise.all([from, to].map(version => readValue(kind, at, name, version))))
      setProblem('')
    } catch (error) {
      setProblem(problemOf(error).message)
    }
  }
  const value = (index: number) => {
    const found = shown?.[index]
    if (!shown) return '••••••••'
    return found ? (found.isText ? found.shown : secretText.base64(found.shown)) : secretText.noKey
  }
  return (
    <>
      <div className={style.removed}>
        <span>−</span>
        <span>{name}</span>
        <span className={style.value}>{value(0)}</span>
      </div>
      <div className={style.added}>
        <span>+</span>
        <span>{name}</span>
        <span className={style.value}>{value(1)}</span>
        <Button
          look="quiet"
          aria-label={shown ? secretText.hideBoth(name) : secretText.revealBoth(name)}
          onPress={() => (shown ? setShown(undefined) : reveal())}
        >
          {shown ? secretText.hide : secretText.reveal}
        </Button>
      </div>
      {problem && <div role="alert">{problem}</div>}
    </>
  )
}

function RollBackDialog({ kind, at, object, version, onClose }: TabProps & { version: Version; onClose: () => void }) {
  const client = useQueryClient()
  const [problem, setProblem] = useState('')
  const restore = async () => {
    try {
      await rollBack(kind, at, object, version.number)
      await client.invalidateQueries({ queryKey: objectKey(kind, at) })
      onClose()
    } catch (error) {
      setProblem(problemOf(error).message)
    }
  }
  return (
    <Modal title={secretText.rollBackQuestion(oneOf(kind), at.name, version.number)} isOpen onClose={onClose}>
      <p>{secretText.rollBackAdvice(version.number)}</p>
      {problem && (
        <Note tone="bad">
          <span role="alert">{problem}</span>
        </Note>
      )}
      <Command>{rollbackCommand(kind, at, version.number)}</Command>
      <DialogButtons>
        <Button onPress={onClose}>{text.cancel}</Button>
        <Button look="primary" onPress={() => restore()}>
          {secretText.rollBack}
        </Button>
      </DialogButtons>
    </Modal>
  )
}
