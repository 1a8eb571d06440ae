// This module writes numbers as text, in one way for labels, tables and captions.

const COUNT = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
const SHORT = new Intl.NumberFormat('en', {maximumSignificantDigits: 4});

// Writes 4725 as "4,725"; a fraction keeps four digits.
export function formatCount(value) {
    if (value === null || value === undefined || !Number.isFinite(value))
        return '-';
    return Number.isInteger(value) ? COUNT.format(value) : SHORT.format(value);
}

function scale(value, step, units) {
    let unit = 0;
    while (Math.abs(value) >= step && unit < units.length - 1) {
        value /= step;
        unit++;
    }
    return `${SHORT.format(value)} ${units[unit]}`;
}

export const formatBytes = value =>
    Number.isFinite(value) ? scale(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']) : '-';

export function formatTime(seconds) {
    if (!Number.isFinite(seconds))
        return '-';
    return seconds >= 1 ? `${SHORT.format(seconds)} s`
                        : scale(seconds * 1e9, 1000, ['ns', 'us', 'ms']);
}

export const formatRate = flopPerSecond =>
    Number.isFinite(flopPerSecond) ? `${SHORT.format(flopPerSecond / 1e9)} GFLOP/s` : '-';

export const formatShare = share =>
    Number.isFinite(share) ? `${SHORT.format(Math.round(share * 1e4) / 1e2)} %` : '-';
