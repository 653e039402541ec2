// Actions on an access key: rotate with overlap, enable, disable. The new secret is shown once.

import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { ApiError } from '../../api/errors.ts'
import { overlapReason } from '../../kinds/key-rotation.ts'
import { rotateCommand } from '../data/commands.ts'
import { objectKey } from '../data/object.ts'
import { server, serverUrl } from '../data/server.ts'
import { text } from '../text/common.ts'
import { keyText } from '../text/keys.tsx'
import { ActionButton, Button } from '../ui/button.tsx'
import { DialogButtons, Modal } from '../ui/dialog.tsx'
import { SelectField } from '../ui/fields.tsx'
import { Command, Note, problemOf } from '../ui/parts.tsx'
import { DisableButton } from './disable-button.tsx'
import { ShownOnce } from './shown-once.tsx'
import type { TabProps } from './tab.ts'

/** Seconds, and the same for the command line. */
const overlaps: { readonly [label: string]: readonly [seconds: number, flag: string] } = {
  [keyText.overlaps.tenMinutes]: [600, '10m'],
  [keyText.overlaps.hour]: [3600, '1h'],
  [keyText.overlaps.day]: [86_400, '1d'],
  [keyText.overlaps.week]: [604_800, '7d'],
  [keyText.overlaps.none]: [0, ''],
}

export function KeyActions(props: TabProps) {
  const { kind, at, object } = props
  const [isRotating, setRotating] = useState(false)
  return (
    <>
      {object.spec?.['type'] !== 'Login' && (
        <ActionButton
          look="primary"
          action={{ verb: 'create', kind, ...at, subresource: 'rotate' }}
          onPress={() => setRotating(true)}
        >
          {keyText.rotate}
        </ActionButton>
      )}
      <DisableButton {...props} />
      {isRotating && <RotateDialog {...props} onClose={() => setRotating(false)} />}
    </>
  )
}

function RotateDialog({ kind, at, onClose }: TabProps & { onClose: () => void }) {
  const client = useQueryClient()
  const [overlap, setOverlap] = useState<string>(keyText.overlaps.hour)
  const [problem, setProblem] = useState('')
  const [needsForce, setNeedsForce] = useState(false)
  const [secret, setSecret] = useState('')
  const [isRunning, setRunning] = useState(false)
  const [seconds, flag] = overlaps[overlap] ?? [0, '']
  const rotate = async () => {
    setRunning(true)
    setProblem('')
    try {
      const spec = { overlapSeconds: seconds, ...(needsForce ? { force: true } : {}) }
      const { object } = await server.act(kind, at, 'rotate', { kind: 'KeyRotation', spec })
      setSecret((object.spec as { readonly key?: string }).key ?? '')
      await client.invalidateQueries({ queryKey: objectKey(kind, at) })
    } catch (error) {
      const isOverlap =
        error instanceof ApiError && error.details?.causes?.some(({ reason }) => reason === overlapReason) === true
      setNeedsForce(isOverlap)
      setProblem(problemOf(error).message)
    } finally {
      setRunning(false)
    }
  }
  return (
    // A dialog that closes before the answer would lose the key.
    <Modal title={keyText.rotateNamed(at.name)} isOpen {...(isRunning ? {} : { onClose })}>
      <p>{keyText.rotateAdvice}</p>
      <SelectField label={keyText.overlap} value={overlap} onChange={setOverlap} options={Object.keys(overlaps)} />
      {problem && (
        <Note tone="bad">
          <span role="alert">{problem}</span>
          {needsForce && <span>{keyText.forceAdvice}</span>}
        </Note>
      )}
      <Command>{rotateCommand(at.name, flag)}</Command>
      <DialogButtons>
        <Button isDisabled={isRunning} onPress={onClose}>
          {text.cancel}
        </Button>
        <Button look={needsForce ? 'danger' : 'primary'} onPress={() => rotate()}>
          {needsForce ? keyText.force : keyText.rotate}
        </Button>
      </DialogButtons>
      {/* Inside of this dialog, so that the focus returns to the button that opened it. */}
      {secret && <ShownOnce name={at.name} secret={secret} server={serverUrl.href} onClose={onClose} />}
    </Modal>
  )
}
