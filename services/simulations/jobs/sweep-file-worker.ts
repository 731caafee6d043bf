/** The process that makes files of sweeps. */
import { serveJobs } from '../../workers/serve-jobs.ts'
import { lowerPriority, NICE_ASKED } from '../../workers/low-priority.ts'
import { sweepFile } from './sweep-file.ts'

lowerPriority(NICE_ASKED)
serveJobs(sweepFile)
