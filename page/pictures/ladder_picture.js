// This module draws the ladder: for each kernel what was predicted and what was measured, on one
// scale.
import {formatError, nameOrigin} from '../facts/bench.js';
import {LIMITERS} from '../facts/model.js';
import {bars} from '../parts/chart.js';
import {formatCount, formatRate} from '../parts/format.js';

const getSeries = (app, entry) => entry.isPeer ? 4 : !entry.explained ? 3 :
    entry.family === app.state.kernel ? 2 : 1;

function listBars(app, entry) {
    const series = getSeries(app, entry);
    const {record} = entry;
    const name = entry.short ?? entry.name;
    const list = [];
    if (!record || entry.predicted !== null)
        list.push({name, value: entry.predicted ?? 0, series, isHatched: true,
                   text: entry.predicted === null ? 'cannot run, see the table'
                                                  : `${formatRate(entry.predicted)} predicted`});
    if (record)
        list.push({name: list.length ? '' : name, value: record.gflop_per_s * 1e9, series,
                   text: `${formatRate(record.gflop_per_s * 1e9)} measured` +
                         (record.is_right ? '' : ': WRONG RESULT')});
    return list;
}

export const drawLadder = (app, entries, width, label) =>
    bars({label, width, list: entries.flatMap(entry => listBars(app, entry))});

export const LADDER_COLUMNS = ['kernel', {label: 'predicted GFLOP/s (estimate)', isRight: true},
    {label: 'measured GFLOP/s', isRight: true}, 'measured / predicted', 'largest error',
    'measured in', 'takes longest'];

// Writes the largest error, as a share of its bound too, and whether the result is right.
function sayError({max_bound_share: share, is_right: isRight, ...record}) {
    const part = share === null ? '' : `, ${share.toPrecision(2)} of the bound`;
    return formatError(record) + part + (isRight ? '' : ': WRONG');
}

export const listLadderRows = entries => entries.map(({name, predicted, refusal, record,
                                                       explained}) => [
    name, predicted === null ? '-' : predicted / 1e9, record?.gflop_per_s ?? '-',
    record && predicted ? `${formatCount(record.gflop_per_s * 1e9 / predicted)} x` : '-',
    record ? sayError(record) : '-', record ? nameOrigin(record) : '-',
    refusal ? `cannot run: ${refusal}` : explained ? LIMITERS[explained.limiter] : '-']);
