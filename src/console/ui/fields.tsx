// Form fields with a label, help and an error.

import { FieldError, Input, Label, TextField as RawTextField, Text } from 'react-aria-components'
import style from './fields.module.css'

type TextFieldProps = {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly help?: string | undefined
  readonly problem?: string | undefined
  readonly isMono?: boolean
  readonly isRequired?: boolean
  readonly type?: 'text' | 'password' | 'number'
}

export function TextField({ label, value, onChange, help, problem, isMono = false, ...rest }: TextFieldProps) {
  return (
    <RawTextField
      className={`${style.field} ${isMono ? style.mono : ''}`}
      value={value}
      onChange={onChange}
      isInvalid={problem !== undefined && problem !== ''}
      autoComplete="off"
      {...rest}
    >
      <Label>{label}</Label>
      <Input />
      {help && (
        <Text slot="description" className={style.help ?? ''}>
          {help}
        </Text>
      )}
      <FieldError className={style.error ?? ''}>{problem}</FieldError>
    </RawTextField>
  )
}
