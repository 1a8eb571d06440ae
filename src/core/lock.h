/* Declares a lock for short sections that survives fork(). */
#ifndef TGI_LOCK_H
#define TGI_LOCK_H

#include <pthread.h>

/* fork() takes every open lock first, so that in the child all locks are free and the data that
 * they guard are consistent. A thread that holds a lock takes no other, opens none and does not
 * fork. */
typedef struct tgi_lock {
    pthread_mutex_t mutex;
    struct tgi_lock *following; /* next one in the list of open locks */
} tgi_lock;

void tgi_lock_open(tgi_lock *lock);
void tgi_lock_close(tgi_lock *lock);

static inline void tgi_lock_take(tgi_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
}

static inline void tgi_lock_give(tgi_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}

#endif
