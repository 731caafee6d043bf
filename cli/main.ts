#!/usr/bin/env -S node --
/** The `headroom` command. Loads nothing heavy before the command is known. */
import './require-node.mjs'
import { programOf } from './program.ts'
import { main } from './run-command-line.ts'

await main(programOf)
