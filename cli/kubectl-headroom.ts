#!/usr/bin/env -S node --
/** The plugin `kubectl headroom`: kubectl finds this command on the PATH by its name. */
import './require-node.mjs'
import { kubectlProgramOf } from './kubectl/program.ts'
import { main } from './run-command-line.ts'

await main(kubectlProgramOf)
