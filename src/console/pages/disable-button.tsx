// Disables or enables an object that has `spec.disabled`: an access key or a user.

import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { objectKey } from '../data/object.ts'
import { server } from '../data/server.ts'
import { text } from '../text/common.ts'
import { ActionButton } from '../ui/button.tsx'
import { Modal } from '../ui/dialog.tsx'
import { problemOf } from '../ui/parts.tsx'
import type { TabProps } from './tab.ts'

export function DisableButton({ kind, at, object }: TabProps) {
  const { disabled = false } = (object.spec ?? {}) as { readonly disabled?: boolean }
  const client = useQueryClient()
  const [problem, setProblem] = useState('')
  const toggle = async () => {
    try {
      const body = { spec: { disabled: !disabled } }
      await server.patch(kind, at, { type: 'merge', body }, { fieldManager: 'console' })
      await client.invalidateQueries({ queryKey: objectKey(kind, at) })
    } catch (error) {
      setProblem(problemOf(error).message)
    }
  }
  return (
    <>
      <ActionButton action={{ verb: 'patch', kind, ...at }} onPress={() => toggle()}>
        {disabled ? text.enable : text.disable}
      </ActionButton>
      <Modal title={text.failed} isOpen={problem !== ''} onClose={() => setProblem('')}>
        <p role="alert">{problem}</p>
      </Modal>
    </>
  )
}
