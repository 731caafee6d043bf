/** Uses the AsyncAPI document as other programs do: a third-party validator checks each message. */
import { Ajv } from 'ajv'
import type { ValidateFunction } from 'ajv'
import { asyncApiDocument } from '../../protocol/asyncapi.ts'

const DOCUMENT = 'headroom'

const ajv = new Ajv({ strict: false })
ajv.addSchema(asyncApiDocument(), DOCUMENT)

/** Null for an operation that has no message in the document. */
export function validatorOf(op: string): ValidateFunction | null {
  return ajv.getSchema(`${DOCUMENT}#/components/messages/${op}/payload`) ?? null
}

/** Returns whether the value is valid as some message of the document. */
export function mayBeAccepted(value: unknown): boolean {
  const op = (value as { readonly body?: { readonly op?: unknown } } | null)?.body?.op
  return typeof op === 'string' && validatorOf(op)?.(value) === true
}
