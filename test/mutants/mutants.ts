import { ADMISSION_MUTANTS } from './admission-mutants.ts'
import { COMMAND_MUTANTS } from './command-mutants.ts'
import { HOOK_MUTANTS } from './hook-mutants.ts'
import { LOST_HISTORY_MUTANTS } from './lost-history-mutants.ts'
import { LEADERSHIP_MUTANTS } from './leadership-mutants.ts'
import type { Mutant } from './mutant.ts'
import { NODE_QUEUE_MUTANTS } from './node-queue-mutants.ts'
import { PREPARING_MUTANTS } from './preparing-mutants.ts'
import { PROTOCOL_MUTANTS } from './protocol-mutants.ts'
import { STOP_MUTANTS } from './stop-mutants.ts'
import { SWAP_MUTANTS } from './swap-mutants.ts'

/** All mutants, in the order of the rules. */
export const MUTANTS: readonly Mutant[] = [
  ...PROTOCOL_MUTANTS,
  ...COMMAND_MUTANTS,
  ...LEADERSHIP_MUTANTS,
  ...LOST_HISTORY_MUTANTS,
  ...STOP_MUTANTS,
  ...ADMISSION_MUTANTS,
  ...PREPARING_MUTANTS,
  ...SWAP_MUTANTS,
  ...NODE_QUEUE_MUTANTS,
  ...HOOK_MUTANTS,
]

export function mutantNamed(name: string): Mutant {
  const mutant = MUTANTS.find((each) => each.name === name)
  if (mutant === undefined) throw new RangeError(`unknown mutant: ${name}`)
  return mutant
}
